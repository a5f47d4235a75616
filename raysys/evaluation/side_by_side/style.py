"""What the page of a comparison adds to the style sheet of reports."""

CSS = """
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.bars{margin:0 0 4px}
.bars th[scope=row]{white-space:normal;width:21%;line-height:1.3}
.bars td,.bars th{vertical-align:middle;padding-top:7px;padding-bottom:7px}
.bars thead th{vertical-align:bottom}
.bars .number{white-space:nowrap;padding-left:14px}
.bars thead .number{white-space:normal;min-width:70px;max-width:100px}
.bars .plot{width:100%;min-width:150px;padding-right:14px}
.bars .small{display:block;font-size:12px;font-weight:400;color:var(--soft)}
.bars .this{color:var(--accent)}
.bars .this td,.bars .this th{font-weight:650}
.bars .floor,.bars .reference{color:var(--soft)}
.theirs{color:var(--soft);font-weight:400!important}
.bars tfoot td{border:0;padding-top:0}
.track{position:relative;height:16px}
.track+.track{margin-top:2px}
.track i,.legend i{position:absolute;display:block}
.track .line{top:-8px;bottom:-8px;width:1px;background:var(--rule)}
.track .fill{top:2px;bottom:2px;background:var(--bar);border-radius:0 3px 3px 0}
.this .track .fill{background:var(--accent)}
.floor .track .fill{background:var(--faint)}
.reference .track .fill{background:repeating-linear-gradient(135deg,var(--bar) 0 3px,transparent 3px 6px)}
.series-2 .track:nth-child(2) .fill,.series-3 .track:nth-child(2) .fill{opacity:.72}
.series-3 .track:nth-child(3) .fill{opacity:.48}
.series-2 .track,.series-3 .track{height:12px}
.track .whisker{top:50%;height:2px;margin-top:-1px;background:var(--ink)}
.track .whisker::before,.track .whisker::after{content:"";position:absolute;top:-3px;height:8px;width:2px;background:var(--ink)}
.track .whisker::after{right:0}
.seed{width:6px;height:6px;border-radius:50%;background:var(--card);border:1.5px solid var(--ink);margin:-3px 0 0 -3px;top:50%}
.hollow{width:10px;height:10px;transform:rotate(45deg);border:1.8px solid var(--wrong);margin:-5px 0 0 -5px;top:50%}
.track .range{top:50%;border-top:1.5px dotted var(--wrong);height:0}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-weight:400;font-size:12.5px}
.legend span{position:relative}
.legend i.seed,.legend i.hollow{position:static;display:inline-block;margin:0 3px 1px 2px}
.legend i.hollow{width:8px;height:8px}
.axis{position:relative;height:15px;font-size:11px;color:var(--faint)}
.axis span{position:absolute;transform:translateX(-50%)}
.axis span:first-child{transform:none}
.axis span:last-child{transform:translateX(-100%)}
.order{list-style:none;margin:0;padding:0}
.order li{display:grid;grid-template-columns:24px 1fr;gap:10px;padding:8px 0;border-bottom:1px solid var(--rule);align-items:start}
.order li:last-child{border-bottom:0}
.order+.note{margin:8px 0 0}
.overview td{white-space:nowrap;vertical-align:middle}
.overview th[scope=row]{white-space:normal;min-width:180px}
.overview .mark{width:19px;height:19px;font-size:11.5px}
.overview+.note,.scroll+.note{margin:10px 0 0}
.mark.unknown{color:var(--soft);background:var(--wash)}
.split details{margin:12px 0 0;border-radius:9px}
.split details summary{padding:9px 14px;font-size:13.5px}
.split details>div{padding:0 14px 10px}
.words-table td{vertical-align:top}
.words-table .expected{font-size:13px}
.words-table .mark{width:18px;height:18px;font-size:11px;margin-right:6px;vertical-align:1px}
.notice{border-left:3px solid var(--wrong);padding:2px 0 2px 14px;margin:20px 0 0;font-size:14.5px}
.notice ul{margin:4px 0 0;padding-left:18px}
@media (max-width:640px){
.bars thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.track .line{top:0!important;bottom:0!important}
.bars tr{display:grid;grid-template-columns:repeat(6,1fr);gap:3px 12px;padding:9px 0;border-bottom:1px solid var(--rule)}
.bars tfoot tr{border:0;padding:0}
.bars tfoot td:empty{display:none}
.bars th[scope=row],.bars .plot{grid-column:1/-1;width:auto;min-width:0;padding-right:0}
.bars th[scope=row] .small{display:inline;margin-left:8px}
.bars td,.bars th{border:0!important;padding:0}
.bars .number{grid-column:span 2;text-align:left;padding-left:0}
.bars.series-1 .number{grid-column:span 3}
.bars td[data-label]::before{content:attr(data-label);display:block;font-size:11.5px;font-weight:400;line-height:1.2;
  color:var(--faint)}
}
"""
