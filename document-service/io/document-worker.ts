/**
 * The code that document-threads.ts runs in its threads: merge.ts and content.ts on the given bytes. Results are
 * transferred, not copied.
 */

import { randomInt } from "node:crypto";

import { move, transferableSymbol, valueSymbol } from "piscina";

import { checkedEdit, type DocumentContent, type DocumentFormat, contentJson, diffOf, editOf, textOf, type Wanted } from "../content.ts";
import { editOfJson } from "../json-content.ts";
import { mergeEdits } from "../merge.ts";
import { revertingEdit } from "../history/reverting.ts";
import type { EditAuthors } from "../yjs-authors.ts";
import { type PackedEdits, unpack } from "./packed-edits.ts";

export type Task = keyof typeof tasks;
export type ThreadQuestion<T extends Task> = Parameters<(typeof tasks)[T]>[0];
export type ThreadAnswer<T extends Task> = Awaited<ReturnType<(typeof tasks)[T]>>;

const tasks = {
  merge: ({ state, edits, authors }: { state: Uint8Array; edits: PackedEdits; authors?: EditAuthors | undefined }) =>
    mergeEdits(state, unpack(edits), authors),
  diff: ({ state, vector }: { state: Uint8Array; vector: Uint8Array }) => diffOf(state, vector),
  json: ({ state, wanted }: { state: Uint8Array; wanted: readonly Wanted[] }) => contentJson(state, wanted),
  text: ({ state, name }: { state: Uint8Array; name: string | undefined }) => textOf(state, name),
  /** Most threads render nothing, and this code would take a third of the CPU of a thread's start. */
  render: async ({ state, format, wanted }: { state: Uint8Array; format: DocumentFormat; wanted: Wanted | undefined }) =>
    (await import("../formats/rendering.ts")).renderedAs(state, format, wanted),
  check: ({ edit }: { edit: Uint8Array }) => checkedEdit(edit),
  revert: ({ current, past }: { current: Uint8Array; past: Uint8Array }) => revertingEdit(current, past, randomInt(2 ** 32)),
  make: ({ content }: { content: DocumentContent }) => editOf(content),
  makeOfJson: ({ body }: { body: Uint8Array }) => editOfJson(body),
};

/** Replaces an answer: the task threw, and its thread continues. */
export type Threw = { readonly threw: unknown };

/** The message from the pool. `begun`: set to 1 when the task begins. */
type ThreadTask<T extends Task> = { readonly task: T; readonly question: ThreadQuestion<T>; readonly begun: Int32Array };

/** The pool calls this. An error thrown here is a failure of the thread. */
export async function run<T extends Task>({ task, question, begun }: ThreadTask<T>): Promise<unknown> {
  Atomics.store(begun, 0, 1);
  const answer = await answerOf(task, question);
  if ("threw" in answer) return answer;
  return move({ [transferableSymbol]: buffersOf(answer), [valueSymbol]: answer } as unknown as ArrayBuffer);
}

async function answerOf<T extends Task>(task: T, question: ThreadQuestion<T>): Promise<ThreadAnswer<T> | Threw> {
  try {
    return await (tasks[task] as (question: ThreadQuestion<T>) => ThreadAnswer<T> | Promise<ThreadAnswer<T>>)(question);
  } catch (threw) {
    return { threw }; // The error may be caused by a client, which chooses the content of documents and requests.
  }
}

function buffersOf(answer: unknown): ArrayBufferLike[] {
  const values = answer instanceof Uint8Array ? [answer] : Object.values(answer as object);
  return values.flatMap((value) => (value instanceof Uint8Array ? [value.buffer] : []));
}
