/**
 * Makes "\n" the only line end, as in the shared text. An editor that counts "\r\n" as one character, where Yjs counts
 * two, would insert later text at the wrong place. A text with "\r\n" keeps it, and no caret can stand inside it.
 */

import { EditorSelection, EditorState, RangeSet, RangeValue } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

const LINE_END = new (class extends RangeValue {})();

export const lineEnds = [
  EditorState.lineSeparator.of("\n"),
  EditorView.clipboardInputFilter.of((pasted) => pasted.replace(/\r\n?/g, "\n")),
  EditorView.atomicRanges.of(({ state, visibleRanges }) => {
    const pairs = [];
    for (const { from, to } of visibleRanges)
      for (let line = state.doc.lineAt(from); ; line = state.doc.line(line.number + 1)) {
        if (line.text.endsWith("\r") && line.to < state.doc.length) pairs.push(LINE_END.range(line.to - 1, line.to + 1));
        if (line.to >= to || line.number === state.doc.lines) break;
      }
    return RangeSet.of(pairs);
  }),
  EditorState.transactionFilter.of((transaction) => {
    if (transaction.selection === undefined) return transaction;
    const { newSelection, newDoc } = transaction;
    const outside = (at) => (newDoc.sliceString(at - 1, at + 1) === "\r\n" ? at - 1 : at);
    const ranges = newSelection.ranges.map(({ anchor, head }) => EditorSelection.range(outside(anchor), outside(head)));
    const moved = EditorSelection.create(ranges, newSelection.mainIndex);
    return moved.eq(newSelection) ? transaction : [transaction, { selection: moved, sequential: true }];
  }),
];
