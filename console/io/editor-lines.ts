/**
 * Line ends and line directions of the editor. Lines end only at "\n", as in the shared text. If the editor counted
 * "\r\n" as one character, where Yjs counts two, every later edit would be at a wrong position.
 */

import {
  EditorSelection,
  EditorState,
  type Extension,
  type Line,
  type Range,
  RangeSet,
  RangeValue,
  type Transaction,
} from "@codemirror/state";
import { EditorView, Decoration, ViewPlugin } from "@codemirror/view";
import { isRightToLeft } from "../line-direction.ts";

class LineEnd extends RangeValue {}
const LINE_END = new LineEnd();

export const lineBreaks: Extension = [
  EditorState.lineSeparator.of("\n"),
  EditorView.clipboardInputFilter.of((pasted) => pasted.replace(/\r\n?/g, "\n")),
  EditorView.atomicRanges.of(pairsInView),
  EditorState.transactionFilter.of(outOfPairs),
];

/** Finds each "\r\n" in view. The cursor skips both characters, and a deletion removes both. */
function pairsInView(view: EditorView): RangeSet<LineEnd> {
  const pairs: Range<LineEnd>[] = [];
  for (const { text, to } of linesInView(view))
    if (text.endsWith("\r") && to < view.state.doc.length) pairs.push(LINE_END.range(to - 1, to + 1));
  return RangeSet.of(pairs);
}

function* linesInView({ state, visibleRanges }: EditorView): Iterable<Line> {
  for (const { from, to } of visibleRanges)
    for (let line = state.doc.lineAt(from); ; line = state.doc.line(line.number + 1)) {
      yield line;
      if (line.to >= to || line.number === state.doc.lines) break;
    }
}

/** Moves a cursor from inside a "\r\n" to before it, so that typed text belongs to the line. */
function outOfPairs(transaction: Transaction): Transaction | readonly [Transaction, { selection: EditorSelection; sequential: true }] {
  const { selection, newSelection, newDoc } = transaction;
  const before = (at: number): number => (newDoc.sliceString(at - 1, at + 1) === "\r\n" ? at - 1 : at);
  if (selection === undefined) return transaction;
  const ranges = newSelection.ranges.map(({ anchor, head }) => EditorSelection.range(before(anchor), before(head)));
  const moved = EditorSelection.create(ranges, newSelection.mainIndex);
  return moved.eq(newSelection) ? transaction : [transaction, { selection: moved, sequential: true }];
}

/** Sets the direction of each right-to-left line. Keys and clicks follow that direction. */
const RIGHT_TO_LEFT = Decoration.line({ attributes: { dir: "rtl" } });

export const lineDirections: Extension = [
  EditorView.perLineTextDirection.of(true),
  ViewPlugin.define((view) => new LineDirections(view), { decorations: ({ lines }) => lines }),
];

class LineDirections {
  lines: RangeSet<Decoration>;

  constructor(view: EditorView) {
    this.lines = rightToLeftInView(view);
  }

  update({ view, docChanged, viewportChanged }: { view: EditorView; docChanged: boolean; viewportChanged: boolean }): void {
    if (docChanged || viewportChanged) this.lines = rightToLeftInView(view);
  }
}

function rightToLeftInView(view: EditorView): RangeSet<Decoration> {
  return RangeSet.of([...linesInView(view)].filter(({ text }) => isRightToLeft(text)).map(({ from }) => RIGHT_TO_LEFT.range(from)));
}
