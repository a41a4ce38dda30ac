/**
 * Which content a Yjs update has, and which it builds on, without integrating it. Example: the second of two keystrokes
 * needs the first, so a document that has neither can show the second only after both. Linear in the update. Rules YUF1
 * to YUF3.
 */

import * as Y from "yjs";

/** Exclusive ends of content, by Yjs client. */
export type YClocks = ReadonlyMap<number, number>;
export type ContentRun = { readonly client: number; readonly start: number; end: number };
type Decoded = ReturnType<typeof Y.decodeUpdate>;

export function runsOf(structs: Decoded["structs"]): ContentRun[] {
  const runs: ContentRun[] = [];
  for (const struct of structs) {
    if (struct instanceof Y.Skip) continue;
    const { client, clock } = struct.id;
    const run = runs.at(-1);
    if (run?.client === client && run.end === clock) run.end += struct.length;
    else runs.push({ client, start: clock, end: clock + struct.length });
  }
  return runs;
}

/** The content that an update needs in addition to its own. `runs`: its own content. */
export function needsOf(structs: Decoded["structs"], ds: Decoded["ds"], runs: readonly ContentRun[]): YClocks {
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

/** Whether all content that an update needs is known. */
export function isComplete(needs: YClocks, known: (client: number) => number): boolean {
  for (const [client, end] of needs) if (known(client) < end) return false;
  return true;
}
