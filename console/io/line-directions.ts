/** Lines that are written from right to left are set so, each for itself; keys and clicks go by that too. */

import { type Extension, type Range, RangeSet } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin } from "@codemirror/view";

import { isRightToLeft } from "../line-direction.ts";

const RIGHT_TO_LEFT = Decoration.line({ attributes: { dir: "rtl" } });

export const lineDirections: Extension = [
  EditorView.perLineTextDirection.of(true),
  ViewPlugin.define((view) => new LineDirections(view), { decorations: ({ lines }) => lines }),
];

class LineDirections {
  lines: RangeSet<Decoration>;

  constructor(view: EditorView) {
    this.lines = linesInView(view);
  }

  update({ view, docChanged, viewportChanged }: { view: EditorView; docChanged: boolean; viewportChanged: boolean }): void {
    if (docChanged || viewportChanged) this.lines = linesInView(view);
  }
}

function linesInView({ state, visibleRanges }: EditorView): RangeSet<Decoration> {
  const lines: Range<Decoration>[] = [];
  for (const { from, to } of visibleRanges)
    for (let line = state.doc.lineAt(from); ; line = state.doc.line(line.number + 1)) {
      if (isRightToLeft(line.text)) lines.push(RIGHT_TO_LEFT.range(line.from));
      if (line.to >= to || line.number === state.doc.lines) break;
    }
  return RangeSet.of(lines);
}
