// Builds the console into src/tamis/server/static. `make console` runs it.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, rmSync, writeFileSync, copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "tamis", "server", "static");

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const result = await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.jsx", style: "src/style.css" },
  outdir: target,
  bundle: true,
  splitting: true,
  format: "esm",
  minify: true,
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  chunkNames: "[name]-[hash]",
  legalComments: "none",
  charset: "utf8",
  metafile: true,
});
copyFileSync(join(here, "src", "index.html"), join(target, "index.html"));
copyFileSync(join(here, "src", "icon.svg"), join(target, "icon.svg"));

// The licences of all that went into the bundle.
const packages = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const licences = [...packages].sort().map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((own) => /^licen[cs]e/i.test(own));
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : license;
  return `${name} ${version} (${license})\n\n${text}\n`;
});
const rule = "\n" + "-".repeat(80) + "\n\n";
writeFileSync(join(target, "licences.txt"), licences.join(rule));

// So that a test finds a build that is older than its sources.
const digest = createHash("sha256");
for (const name of ["package.json", "build.mjs", ...readdirSync(join(here, "src")).sort().map((own) => `src/${own}`)]) {
  digest.update(name + "\0").update(readFileSync(join(here, name))).update("\0");
}
writeFileSync(join(target, "sources.sha256"), digest.digest("hex") + "\n");
