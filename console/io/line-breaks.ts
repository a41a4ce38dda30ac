/**
 * Lines end as they do in the shared text: at "\n", and at nothing else. An editor that takes "\r\n" for one character,
 * where Yjs counts two, would put each edit behind it somewhere else than its writer sees it.
 */

import { EditorSelection, EditorState, type Extension, type Range, RangeSet, RangeValue, type Transaction } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

class LineEnd extends RangeValue {}
const LINE_END = new LineEnd();

export const lineBreaks: Extension = [
  EditorState.lineSeparator.of("\n"),
  EditorView.clipboardInputFilter.of((pasted) => pasted.replace(/\r\n?/g, "\n")),
  EditorView.atomicRanges.of(pairsInView),
  EditorState.transactionFilter.of(outOfPairs),
];

/** Each "\r\n": keys go over both at once, and take both away. */
function pairsInView({ state, visibleRanges }: EditorView): RangeSet<LineEnd> {
  const pairs: Range<LineEnd>[] = [];
  for (const { from, to } of visibleRanges)
    for (let line = state.doc.lineAt(from); ; line = state.doc.line(line.number + 1)) {
      if (line.text.endsWith("\r") && line.to < state.doc.length) pairs.push(LINE_END.range(line.to - 1, line.to + 1));
      if (line.to >= to || line.number === state.doc.lines) break;
    }
  return RangeSet.of(pairs);
}

/** Who comes to stand within a "\r\n", by End or a click, stands before it: what is typed there belongs to the line. */
function outOfPairs(transaction: Transaction): Transaction | readonly [Transaction, { selection: EditorSelection; sequential: true }] {
  const { selection, newSelection, newDoc } = transaction;
  const before = (at: number): number => (newDoc.sliceString(at - 1, at + 1) === "\r\n" ? at - 1 : at);
  if (selection === undefined) return transaction;
  const ranges = newSelection.ranges.map(({ anchor, head }) => EditorSelection.range(before(anchor), before(head)));
  const moved = EditorSelection.create(ranges, newSelection.mainIndex);
  return moved.eq(newSelection) ? transaction : [transaction, { selection: moved, sequential: true }];
}
