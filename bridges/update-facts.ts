/**
 * The facts that the bridge needs about a Yjs update, found without integrating it into a document: whether every
 * document of a room accepts it, and which content it builds on. Example: the second of two keystrokes needs the first,
 * so a room that has neither can show the second only after both. Linear in the update. Rules YUF1 to YUF3.
 */

import * as Y from "yjs";

import { checkUpdate } from "../shared/yjs/checked-update.ts";

/** Exclusive ends of content, by Yjs client. */
export type YClocks = ReadonlyMap<number, number>;

export type AcceptableUpdate = {
  readonly kind: "fit";
  /** The content that the update needs in addition to its own. */
  readonly needs: YClocks;
  /** The runs of content that the update has. */
  readonly runs: readonly ContentRun[];
  readonly deletes: Y.Snapshot["ds"];
};

export type UpdateFacts = AcceptableUpdate | { readonly kind: "unfit"; readonly why: string };

type ContentRun = { readonly client: number; readonly start: number; end: number };

export function factsOf(update: Uint8Array): UpdateFacts {
  const check = checkUpdate(update);
  if (check.kind === "unfit") return { kind: "unfit", why: check.why };
  const { structs, ds } = Y.decodeUpdate(update);
  const runs: ContentRun[] = [];
  for (const struct of structs) {
    if (struct instanceof Y.Skip) continue;
    const { client, clock } = struct.id;
    const run = runs.at(-1);
    if (run?.client === client && run.end === clock) run.end += struct.length;
    else runs.push({ client, start: clock, end: clock + struct.length });
  }
  return { kind: "fit", needs: needsOf(structs, ds, runs), runs, deletes: ds };
}

/** Whether all content that an update needs is known. */
export function isComplete(needs: YClocks, known: (client: number) => number): boolean {
  for (const [client, end] of needs) if (known(client) < end) return false;
  return true;
}

type Decoded = ReturnType<typeof Y.decodeUpdate>;

function needsOf(structs: Decoded["structs"], ds: Decoded["ds"], runs: readonly ContentRun[]): YClocks {
  const needs = new Map<number, number>();
  /** Content after a gap counts as needed. An update without pending content has no gap. */
  const firstRuns = new Map<number, ContentRun>();
  for (const run of runs) if (!firstRuns.has(run.client)) firstRuns.set(run.client, run);
  const need = (client: number, end: number): void => {
    const own = firstRuns.get(client);
    const isOwn = own !== undefined && own.start < end && end <= own.end;
    if (!isOwn && end > (needs.get(client) ?? 0)) needs.set(client, end);
  };
  for (const { client, start } of runs) if (start > 0) need(client, start);
  for (const struct of structs) {
    if (!(struct instanceof Y.Item)) continue;
    for (const id of [struct.origin, struct.rightOrigin, struct.parent]) if (id instanceof Y.ID) need(id.client, id.clock + 1);
  }
  for (const [client, deletes] of ds.clients) for (const { clock, len } of deletes) need(client, clock + len);
  return needs;
}
