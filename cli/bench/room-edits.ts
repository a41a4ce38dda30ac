/**
 * The edits of one room of `coroom bench`: each written edit, its author's acknowledgement, and its receipt by every
 * other person. An edit is missing until a person received it, alone or within a snapshot. Edits of one author arrive in
 * their order: after edit 3, edit 5 makes edit 4 missing.
 */

import type { Keystrokes } from "./keystroke.ts";
import type { Latencies } from "./latencies.ts";

/** `acked`: to the author's acknowledgement. `received`: to the receipt by another person. */
type EditTimes = { readonly acked: Latencies; readonly received: Latencies };

/** `person`: lacks the edit. `author` equal to `person`: the edit was not acknowledged. Places in the room, from 0; edits from 1. */
type MissingEdits = { readonly person: number; readonly author: number; readonly first: number; readonly last: number };

/** One author's edits as one person received them. */
type Track = { next: number; readonly gaps: Set<number>; timedTo: number };

export class RoomEdits {
  readonly #times: EditTimes;
  /** Time of each edit, by author. */
  readonly #writtenAt: number[][];
  /** By person and author. Undefined: the person never was in the room. */
  readonly #tracks: (Track[] | undefined)[];
  #repeated = 0;

  constructor(people: number, times: EditTimes) {
    this.#times = times;
    this.#writtenAt = Array.from({ length: people }, () => []);
    this.#tracks = Array.from({ length: people }, () => undefined);
  }

  /** From now on the person is expected to receive every edit of the room. */
  addPerson(person: number): void {
    this.#tracks[person] ??= this.#writtenAt.map(() => ({ next: 1, gaps: new Set<number>(), timedTo: 0 }));
  }

  /** Returns the number of the author's edit, from 1. */
  write(author: number, now: number): number {
    return this.#writtenAt[author]!.push(now);
  }

  receive(person: number, { writer, counter, count }: Keystrokes, now: number): void {
    const author = writer - 1;
    const track = this.#tracks[person]?.[author];
    if (track === undefined) return;
    for (let edit = counter; edit < counter + count; edit++) {
      if (edit < track.next && !track.gaps.delete(edit)) {
        this.#repeated += 1;
        continue;
      }
      for (let gap = track.next; gap < edit; gap++) track.gaps.add(gap);
      track.next = Math.max(track.next, edit + 1);
      this.#recordTime(person, author, edit, track, now);
    }
  }

  /** A snapshot replaces everything received before. `counts`: edits that it contains, by writer. */
  receiveSnapshot(person: number, counts: ReadonlyMap<number, number>): void {
    this.#tracks[person]?.forEach((track, author) => {
      track.next = (counts.get(author + 1) ?? 0) + 1;
      track.gaps.clear();
      track.timedTo = Math.max(track.timedTo, track.next - 1);
    });
  }

  /** All edits arrive again. */
  receiveRolledBack(person: number): void {
    this.receiveSnapshot(person, new Map());
  }

  get written(): number {
    return sum(this.#writtenAt.map(({ length }) => length));
  }

  get acknowledged(): number {
    return sum(this.#tracks.map((tracks, person) => receivedBy(tracks?.[person])));
  }

  /** Receipts by other people. */
  get received(): number {
    return sum(
      this.#tracks.map((tracks, person) => sum((tracks ?? []).map((track, author) => (author === person ? 0 : receivedBy(track))))),
    );
  }

  /** Receipts by other people if no edit were missing. */
  get expected(): number {
    const isHere = this.#tracks.map((tracks) => tracks !== undefined);
    return sum(isHere.map((is, person) => (is ? this.written - this.#writtenAt[person]!.length : 0)));
  }

  /** Edits that a person received twice. */
  get repeated(): number {
    return this.#repeated;
  }

  get isComplete(): boolean {
    return this.#tracks.every(
      (tracks) => tracks?.every(({ next, gaps }, author) => gaps.size === 0 && next > this.#writtenAt[author]!.length) ?? true,
    );
  }

  /** Consecutive edits together. */
  missing(): MissingEdits[] {
    return this.#tracks.flatMap((tracks, person) =>
      (tracks ?? []).flatMap(({ next, gaps }, author) => {
        const rest = Array.from({ length: Math.max(0, this.#writtenAt[author]!.length - next + 1) }, (_, index) => next + index);
        return runsOf([...gaps].toSorted((a, b) => a - b).concat(rest)).map((run) => ({ person, author, ...run }));
      }),
    );
  }

  /** An edit that arrives again after a rollback is timed once. */
  #recordTime(person: number, author: number, edit: number, track: Track, now: number): void {
    const writtenAt = this.#writtenAt[author]?.[edit - 1];
    if (writtenAt === undefined || edit <= track.timedTo) return;
    track.timedTo = edit;
    (person === author ? this.#times.acked : this.#times.received).record(now - writtenAt);
  }
}

function receivedBy(track: Track | undefined): number {
  return track === undefined ? 0 : track.next - 1 - track.gaps.size;
}

function runsOf(edits: readonly number[]): { first: number; last: number }[] {
  const runs: { first: number; last: number }[] = [];
  for (const edit of edits) {
    const run = runs.at(-1);
    if (run?.last === edit - 1) run.last = edit;
    else runs.push({ first: edit, last: edit });
  }
  return runs;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
