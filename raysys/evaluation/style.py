"""How a report looks: one style sheet, light and dark, from a phone to a wide screen."""

CSS = """
:root{
color-scheme:light dark;
--page:#f6f7f9;--card:#fff;--ink:#14171c;--soft:#5a6270;--faint:#8b93a1;--rule:#e3e6eb;--wash:#eef1f5;
--accent:#2257c5;--accent-soft:#dfe8fb;--bar:#b9c6dd;--right:#157347;--right-soft:#e2f4e9;--wrong:#b3380f;
  --wrong-soft:#fdeae2;
--heat:#17479e;--on-heat:#fff;--shadow:0 1px 2px rgba(20,30,50,.05),0 4px 16px rgba(20,30,50,.04)
}
@media (prefers-color-scheme:dark){
:root{
--page:#0f1216;--card:#171b21;--ink:#e7eaef;--soft:#a3acba;--faint:#7b8594;--rule:#2a3039;--wash:#20262e;
--accent:#85abff;--accent-soft:#20304f;--bar:#46546c;--right:#62cf94;--right-soft:#153325;--wrong:#ff9a73;
  --wrong-soft:#3a2118;
--heat:#8fb2ff;--on-heat:#0c1322;--shadow:none
}
}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);
  font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Helvetica Neue",Arial,sans-serif}
main,header>div,nav>div,footer{max-width:1080px;margin:0 auto;padding:0 28px}
header{padding:56px 0 28px}
h1{font-size:clamp(28px,5vw,44px);line-height:1.1;letter-spacing:-.022em;margin:0 0 14px;font-weight:680;
  text-wrap:balance;overflow-wrap:anywhere}
h2{font-size:23px;letter-spacing:-.012em;line-height:1.25;margin:0 0 6px;font-weight:650}
h3{font-size:15px;margin:0 0 2px;font-weight:620}
p{margin:0 0 12px}
.eyebrow{font-size:13px;font-weight:600;color:var(--accent);margin:0 0 10px}
.lead{font-size:18px;line-height:1.5;color:var(--soft);max-width:66ch;margin:0}
.note{color:var(--soft);font-size:14.5px;max-width:78ch;margin:0 0 18px}
.facts{display:flex;flex-wrap:wrap;gap:8px 28px;margin:22px 0 0;font-size:14px}
.facts div{display:flex;gap:7px}
.facts dt{color:var(--faint)}
.facts dd{margin:0;font-weight:550;overflow-wrap:anywhere}
nav{position:sticky;top:0;z-index:5;background:color-mix(in srgb,var(--page) 92%,transparent);backdrop-filter:blur(8px);
  border-bottom:1px solid var(--rule)}
nav>div{display:flex;gap:22px;overflow-x:auto;scrollbar-width:none;font-size:14px}
nav a{color:var(--soft);text-decoration:none;padding:11px 0;white-space:nowrap}
nav a:hover{color:var(--ink)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:3px}
section{padding:44px 0 4px;scroll-margin-top:30px}
.card{background:var(--card);border:1px solid var(--rule);border-radius:12px;box-shadow:var(--shadow);padding:18px 20px;
  min-width:0}
.grid{display:grid;gap:16px}
.tiles{grid-template-columns:repeat(auto-fit,minmax(210px,1fr));margin:26px 0 0}
.tile{display:flex;flex-direction:column}
.tile .what{font-size:14px;font-weight:600}
.tile .where{font-size:13px;color:var(--soft)}
.tile .figure{font-size:38px;font-weight:660;letter-spacing:-.03em;line-height:1.1;margin:auto 0 8px;padding-top:12px;
  font-variant-numeric:tabular-nums}
.tile .versus{font-size:13px;color:var(--soft);display:grid;gap:1px}
.tile b{color:var(--ink);font-weight:600}
.scroll{overflow-x:auto;overscroll-behavior-x:contain;-webkit-overflow-scrolling:touch}
table{border-collapse:collapse;width:100%;font-size:14.5px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:8px 10px;border-bottom:1px solid var(--rule);vertical-align:bottom}
tbody tr:last-child>*{border-bottom:0}
thead th{font-weight:550;color:var(--soft);font-size:13px;line-height:1.25}
th[scope=row]{font-weight:500;white-space:nowrap;vertical-align:middle}
th:first-child,td:first-child{padding-left:0}
th:last-child,td:last-child{padding-right:0}
.number{text-align:right}
.scores{table-layout:fixed;min-width:520px}
.scores thead th:first-child{width:23%}
.scores td{vertical-align:middle}
.scores .meter{display:block;height:6px;border-radius:3px;background:var(--wash);margin-top:5px;overflow:hidden}
.scores .meter i{display:block;height:100%;background:var(--bar);border-radius:3px}
.scores .this{color:var(--accent)}
.scores .this td,.scores .this th{font-weight:650}
.scores .this .meter i{background:var(--accent)}
.scores .floor{color:var(--soft)}
.split{margin:0 0 16px}
.split h3{font-size:16px}
.split .note{margin:0 0 10px}
.charts{grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr))}
.chart{display:block;width:100%;height:auto;margin-top:8px}
sub,sup{font-size:.72em;line-height:0}
svg text{fill:var(--ink);font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",Arial,sans-serif}
svg .tick{fill:var(--faint);font-size:11px;font-variant-numeric:tabular-nums}
svg .value{font-weight:600;font-variant-numeric:tabular-nums}
svg .grid{stroke:var(--rule)}
svg .curve{fill:none;stroke:var(--accent);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
svg .curve.raw{stroke-width:1;opacity:.28}
svg .dot{fill:var(--accent)}
.map{display:grid;grid-template-columns:auto minmax(170px,1fr);gap:20px 34px;align-items:start}
.map.wide{grid-template-columns:minmax(0,1fr)}
.map.wide .extremes{grid-template-columns:repeat(auto-fit,minmax(240px,1fr));gap:22px 44px;padding-top:0}
.map .scroll{min-width:0}
.map .heat-map{margin-top:8px}
.extremes{display:grid;gap:22px;padding-top:26px;font-size:14px}
.extremes table{font-size:14px}
.extremes td{padding:5px 0}
h4{margin:0 0 4px;font-size:13px;font-weight:600;color:var(--soft)}
.heat-map{display:block;max-width:none}
svg .heat{fill:var(--heat)}
svg .none{fill:var(--wash)}
svg .family{fill:var(--faint);font-size:11.5px}
svg .label{fill:var(--soft)}
svg .on-heat{font-size:12px;font-variant-numeric:tabular-nums;pointer-events:none}
svg .on-heat.strong{fill:var(--on-heat)}
svg .chance-mark{stroke:var(--wrong);stroke-width:2}
.picture{display:flex;align-items:center;justify-content:center;background:#fff;border:1px solid var(--rule);
  border-radius:9px;object-fit:contain;width:100%;aspect-ratio:1;padding:4px}
.missing{background:var(--wash);color:var(--faint);font-size:12px;text-align:center}
.examples{grid-template-columns:repeat(auto-fill,minmax(min(100%,460px),1fr))}
.query{display:grid;grid-template-columns:92px 1fr;gap:16px;align-items:center;padding-bottom:14px;
  border-bottom:1px solid var(--rule)}
.tag{font-size:12.5px;color:var(--soft)}
.sentence{font-size:19px;line-height:1.35;font-weight:560;overflow-wrap:anywhere}
.gloss{font-size:13.5px;color:var(--soft);overflow-wrap:anywhere}
.found{list-style:none;margin:0;padding:0}
.found li{display:grid;grid-template-columns:22px 40px 1fr auto;gap:4px 11px;align-items:center;padding:9px 0;
  border-bottom:1px solid var(--rule)}
.found li:last-child{border-bottom:0;padding-bottom:0}
.found .picture{width:40px;border-radius:6px;padding:2px}
.found .missing{font-size:0}
.mark{display:inline-flex;width:21px;height:21px;border-radius:50%;align-items:center;justify-content:center;
  font-size:12.5px;font-weight:700}
.mark.yes{color:var(--right);background:var(--right-soft)}
.mark.no{color:var(--wrong);background:var(--wrong-soft)}
.text{overflow-wrap:anywhere;line-height:1.35}
.similarity{font-size:13px;color:var(--soft);font-variant-numeric:tabular-nums}
.expected{grid-column:3/-1;font-size:13.5px;color:var(--soft)}
.matches{grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr));margin-bottom:22px}
.kind{margin:0 0 3px;font-size:16px}
.kind+.note{margin-bottom:12px}
.match{display:grid;grid-template-columns:minmax(0,1fr) 108px minmax(0,1fr);align-items:center;align-content:start}
.match .picture{max-width:132px;margin:0 auto}
.edge{position:relative;display:flex;align-items:center;justify-content:center;font-size:13px;
  font-variant-numeric:tabular-nums}
.edge::before{content:"";position:absolute;background:var(--accent);opacity:var(--w,1)}
.edge.across{height:30px}
.edge.across::before{left:4px;right:4px;height:2px;top:calc(50% - 1px)}
.edge.down{height:46px}
.edge.down::before{top:3px;bottom:3px;width:2px;left:calc(50% - 1px)}
.edge span{position:relative;background:var(--card);padding:1px 6px;border-radius:5px;white-space:nowrap;
  font-weight:560}
.edge.low::before{background:repeating-linear-gradient(var(--angle,90deg),var(--wrong) 0 4px,transparent 4px 8px);
  opacity:1}
.edge.down.low::before{--angle:180deg}
.edge.low span{color:var(--wrong);background:var(--wrong-soft)}
.alpha{text-align:center;font-size:13px;color:var(--soft)}
.alpha b{display:block;font-size:21px;font-weight:650;color:var(--ink);font-variant-numeric:tabular-nums;
  line-height:1.2}
.words{text-align:center;min-width:0;align-self:start}
.words~.edge,.words+.edge{align-self:start;margin-top:14px}
.words .sentence{font-size:16px;hyphens:auto}
details{background:var(--card);border:1px solid var(--rule);border-radius:12px;margin:0 0 12px}
summary{cursor:pointer;padding:13px 20px;font-weight:560;font-size:15px}
details>div{padding:2px 20px 18px}
pre{margin:0;font:13px/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-x:auto;
  tab-size:2}
.command{background:var(--wash);border-radius:9px;padding:11px 14px;margin:6px 0 16px}
footer{padding:40px 28px 64px;color:var(--faint);font-size:13px}
@media (max-width:640px){
main,header>div,nav>div,footer{padding-left:16px;padding-right:16px}
header{padding:32px 0 20px}
section{padding-top:34px}
.lead{font-size:16.5px}
.map{grid-template-columns:minmax(0,1fr)}
.extremes{grid-template-columns:1fr;padding-top:0}
.card{padding:15px 15px}
.tiles{grid-template-columns:1fr 1fr;gap:10px}
.tile .figure{font-size:29px;padding-top:8px}
.facts{gap:5px 20px}
.scores{min-width:0;table-layout:auto}
.scores thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.scores tr{display:grid;grid-template-columns:repeat(3,1fr);gap:4px 14px;padding:10px 0;
  border-bottom:1px solid var(--rule)}
.scores tbody tr:last-child{border-bottom:0}
.scores th[scope=row]{grid-column:1/-1}
.scores td,.scores th{border:0!important;padding:0;align-self:end}
.scores td::before{content:attr(data-label);display:block;font-size:11.5px;font-weight:400;line-height:1.2;
  color:var(--faint)}
.match{grid-template-columns:minmax(0,1fr) 84px minmax(0,1fr)}
.query{grid-template-columns:76px 1fr;gap:13px}
.sentence{font-size:17.5px}
}
@media print{
nav{display:none}
.card,details{break-inside:avoid;box-shadow:none}
}
"""
