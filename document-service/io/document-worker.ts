/** What document-threads.ts has done in its threads: merge.ts and content.ts, on what was handed over. Results are moved, not copied. */

import { randomInt } from "node:crypto";

import { move, transferableSymbol, valueSymbol } from "piscina";

import { checkedEdit, type Content, contentJson, diffOf, editOf, textOf, type Wanted } from "../content.ts";
import { mergeEdits } from "../merge.ts";
import { revertingEdit } from "../past/reverting.ts";
import { type PackedEdits, unpack } from "./packed-edits.ts";

export type Task = keyof typeof tasks;
export type Question<T extends Task> = Parameters<(typeof tasks)[T]>[0];
export type Answer<T extends Task> = ReturnType<(typeof tasks)[T]>;

const tasks = {
  merge: ({ state, edits }: { state: Uint8Array; edits: PackedEdits }) => mergeEdits(state, unpack(edits)),
  diff: ({ state, vector }: { state: Uint8Array; vector: Uint8Array }) => diffOf(state, vector),
  json: ({ state, wanted }: { state: Uint8Array; wanted: readonly Wanted[] }) => contentJson(state, wanted),
  text: ({ state, name }: { state: Uint8Array; name: string | undefined }) => textOf(state, name),
  check: ({ edit }: { edit: Uint8Array }) => checkedEdit(edit),
  revert: ({ current, past }: { current: Uint8Array; past: Uint8Array }) => revertingEdit(current, past, randomInt(2 ** 32)),
  make: ({ content }: { content: Content }) => editOf(content),
};

/** In the place of an answer: the task threw, and its thread goes on. */
export type Threw = { readonly threw: unknown };

/** What the pool calls. A failure of its own is then the thread's. */
export function run<T extends Task>({ task, question }: { task: T; question: Question<T> }): unknown {
  const answer = answerOf(task, question);
  if ("threw" in answer) return answer;
  return move({ [transferableSymbol]: buffersOf(answer), [valueSymbol]: answer } as unknown as ArrayBuffer);
}

function answerOf<T extends Task>(task: T, question: Question<T>): Answer<T> | Threw {
  try {
    return (tasks[task] as (question: Question<T>) => Answer<T>)(question);
  } catch (threw) {
    return { threw }; // Whoever writes a document, or asks, decides what is in it.
  }
}

function buffersOf(answer: unknown): ArrayBufferLike[] {
  const values = answer instanceof Uint8Array ? [answer] : Object.values(answer as object);
  return values.flatMap((value) => (value instanceof Uint8Array ? [value.buffer] : []));
}
