/** Shows new text of another person in that person's colour for a moment. */

import type { Extension, Range, Transaction } from "@codemirror/state";
import { Decoration, type DecorationSet, type EditorView, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { ySyncAnnotation } from "y-codemirror.next";

const FRESH_MS = 1500;
/** Further marks are not shown. */
const MARKS_MAX = 200;

/**
 * `writerColour`: called when text arrives. It returns undefined when the text needs no mark, such as the reader's own
 * text.
 */
export function recentTextHighlight(writerColour: () => number | undefined): Extension {
  return ViewPlugin.define((view) => new RecentTextHighlight(view, writerColour), { decorations: (ink) => ink.marks });
}

class RecentTextHighlight {
  marks: DecorationSet = Decoration.none;
  readonly #view: EditorView;
  readonly #writerColour: () => number | undefined;

  constructor(view: EditorView, writerColour: () => number | undefined) {
    this.#view = view;
    this.#writerColour = writerColour;
  }

  update({ changes, transactions }: ViewUpdate): void {
    this.marks = this.marks.map(changes);
    for (const transaction of transactions) if (transaction.annotation(ySyncAnnotation) !== undefined) this.#receive(transaction);
  }

  #receive(transaction: Transaction): void {
    const colour = this.#writerColour();
    if (colour === undefined || this.marks.size >= MARKS_MAX) return;
    const mark = Decoration.mark({ class: `recent-text-highlight person-${colour}` });
    this.marks = this.marks.update({ add: rangesOf(transaction, mark), sort: true });
    setTimeout(() => this.#dry(mark), FRESH_MS);
  }

  #dry(mark: Decoration): void {
    this.marks = this.marks.update({ filter: (_from, _to, other) => other !== mark });
    this.#view.dispatch({});
  }
}

function rangesOf({ changes }: Transaction, mark: Decoration): Range<Decoration>[] {
  const ranges: Range<Decoration>[] = [];
  changes.iterChangedRanges((_fromBefore, _toBefore, from, to) => {
    if (to > from) ranges.push(mark.range(from, to));
  });
  return ranges;
}
