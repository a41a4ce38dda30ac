/**
 * The facts that the bridge needs about a Yjs update, found without integrating it into a document: whether every
 * document of a room accepts it, and which content it builds on. Linear in the update. Rules YUF1 to YUF3.
 */

import * as Y from "yjs";

import { checkUpdate } from "../shared/yjs/checked-update.ts";
import { type ContentRun, needsOf, runsOf, type YClocks } from "../shared/yjs/update-needs.ts";

export type AcceptableUpdate = {
  readonly kind: "fit";
  /** The content that the update needs in addition to its own. */
  readonly needs: YClocks;
  /** The runs of content that the update has. */
  readonly runs: readonly ContentRun[];
  readonly deletes: Y.Snapshot["ds"];
};

export type UpdateFacts = AcceptableUpdate | { readonly kind: "unfit"; readonly why: string };

export function factsOf(update: Uint8Array): UpdateFacts {
  const check = checkUpdate(update);
  if (check.kind === "unfit") return { kind: "unfit", why: check.why };
  const { structs, ds } = Y.decodeUpdate(update);
  const runs = runsOf(structs);
  return { kind: "fit", needs: needsOf(structs, ds, runs), runs, deletes: ds };
}
