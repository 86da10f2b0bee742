BEGIN TRANSACTION;
CREATE TABLE tamis_changes (
	number INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	subscription_id TEXT NOT NULL, 
	moment BIGINT NOT NULL, 
	previous BIGINT, 
	superseded_by BIGINT, 
	created BIGINT, 
	owner TEXT, 
	expression TEXT, 
	tags TEXT, 
	attributes TEXT, 
	valid_from BIGINT, 
	valid_until BIGINT, 
	ticket_hash BLOB, 
	PRIMARY KEY (number)
);
INSERT INTO "tamis_changes" VALUES(1,'subscribe','a',1893456000000000,NULL,3,1,'ann','x = 1','newsurgent','{"k":1}',NULL,1893456060000000,X'68617368');
INSERT INTO "tamis_changes" VALUES(2,'subscribe','b',1893456000000000,NULL,5,2,'','x = ''ü''','','',NULL,NULL,NULL);
INSERT INTO "tamis_changes" VALUES(3,'replace','a',1893456000000000,1,4,1,'ann','x = 2','newsurgent','{"k":1}',NULL,1893456060000000,X'68617368');
INSERT INTO "tamis_changes" VALUES(4,'renew','a',1893456000000000,3,NULL,1,'ann','x = 2','newsurgent','{"k":1}',NULL,1924992000000000,X'68617368');
INSERT INTO "tamis_changes" VALUES(5,'unsubscribe','b',1893456000000000,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "tamis_changes" VALUES(6,'expire','c',1893456000000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE tamis_store (
	id INTEGER NOT NULL, 
	format INTEGER NOT NULL, 
	epoch TEXT NOT NULL, 
	last_change BIGINT NOT NULL, 
	horizon BIGINT NOT NULL, 
	moment BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "tamis_store" VALUES(1,1,'0123456789abcdef0123456789abcdef',6,2,1893456000000000);
CREATE UNIQUE INDEX tamis_latest ON tamis_changes (subscription_id) WHERE superseded_by IS NULL;
CREATE INDEX tamis_owners ON tamis_changes (owner, subscription_id) WHERE superseded_by IS NULL AND owner != '';
CREATE INDEX tamis_leases ON tamis_changes (valid_until) WHERE superseded_by IS NULL AND valid_until IS NOT NULL;
COMMIT;
