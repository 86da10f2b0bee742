"""Words too common to search for, by language; an unlisted language has no stop words."""

from __future__ import annotations

from typing import Final

STOP_WORDS: Final = {
    "danish": "af alle at da de dem den der deres det dette dig din du eller en end er et for fra "
    "ham han har hun hvor i ikke ind jeg kan man med men mig min ned nu og om op os på sig sin som "
    "så til ud under var vi vil være",
    "dutch": "aan al als bij dan dat de der deze die dit door een en er haar had heb heeft het hij "
    "hun ik in is je kan maar me men met mijn na naar niet nog nu of om ook op over te tot u uit "
    "van voor want was wat we wel werd wie wij zal ze zich zij zijn zo zou",
    "english": "a an and are as at be been but by for from had has have he her his i if in into is "
    "it its my no nor not of on or our she so such that the their them then there these they this "
    "those to us was we were what when which who will with you your",
    "finnish": "ei en et ette he hän ja jos jotka kuin kun me minä mutta mukaan niin nyt oli olla "
    "on ovat se sekä sen siitä sillä sinä tai tai tämä te vaan vai voi että",
    "french": "à au aux avec ce ces cette dans de des du elle en est et eux il ils je la le les "
    "leur leurs lui ma mais me mes moi mon ne nos notre nous on ont ou où par pas pour qu que qui "
    "sa sans se ses si son sont sur ta te tes toi ton tu un une vos votre vous y",
    "german": "aber als am an auch auf aus bei bin bis das dass dem den der des die dies diese "
    "dieser doch du durch ein eine einem einen einer eines er es für hat ich ihm ihn ihr im in "
    "ist ja kein mit nach nicht noch nur ob oder sein sich sie sind so über um und uns unter vom "
    "von vor war was wenn wer wie wir wird zu zum zur",
    "italian": "a ad agli ai al alla alle allo anche che chi ci come con da dagli dai dal dalla "
    "degli dei del della delle dello di e ed è gli ha hanno i il in io la le lei lo lui ma mi ne "
    "negli nei nel nella noi non o per più quale quando se si sono su sui sul sulla tra tu un una "
    "uno vi voi",
    "norwegian": "av at da de dem den denne der det dette du eller en er et for fra ha han har hun "
    "i ikke jeg kan man med men mot nå og om opp oss på seg sin som så til under ut var ved vi vil "
    "være",
    "portuguese": "a ao aos as à às com como da das de do dos e é ela elas ele eles em entre era "
    "eu foi há isso isto já lhe mais mas me na nas no nos não o os ou para pela pelas pelo pelos "
    "por que quem se sem ser seu seus sua suas são também te um uma você",
    "russian": "а без был была были было быть в вам вас во вот все вы для до его ее если есть еще "
    "же за и из или им их к как ко когда кто ли мне мы на над не нет но о об он она они оно от по "
    "под при с со так там то того только ты у уже что чтобы эта эти это этот я",
    "spanish": "a al ante como con contra cual cuando de del desde donde e el ella ellas ellos en "
    "entre era es esta este esto está fue ha han hasta hay la las le les lo los más me mi muy ni "
    "no nos o para pero por que quien se ser si sin sobre son su sus también te tu un una uno y ya "
    "yo",
    "swedish": "alla att av de dem den denna det detta dig din du där efter eller en er ett från "
    "för ha han har hon hur i in inte jag kan man med men mig min mot ni nu när och om oss på sig "
    "sin som så till under upp ut var vi vid vill är",
    "turkish": "acaba ama bir biz bu çok da daha de değil diye en gibi hem hep için ile ise ki mi "
    "mı mu mü ne o olarak siz şu ve veya ya",
}
