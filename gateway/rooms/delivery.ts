/**
 * Who gets a committed batch. Everyone in the room gets the same bytes, encoded once; an author alone in its
 * batch has the edits already and gets an ack in their place, which saves the echo.
 */

import type { Run } from "../../shared/wire/committed-edits.ts";
import type { CommittedBatch } from "./in-order.ts";
import type { Members } from "./members.ts";
import type { ConnectionId } from "../ports.ts";

export type Delivery = { readonly kind: "everyone" } | { readonly kind: "others"; readonly author: ConnectionId; readonly acked: Run };

export function planDelivery(batch: CommittedBatch, members: Members): Delivery {
  const [run] = batch.runs;
  if (run === undefined || batch.runs.length > 1) return { kind: "everyone" };
  // Only the author's one live connection may be left out: any other of its connections knows nothing of them.
  const author = members.soleLive(run.client);
  return author === undefined ? { kind: "everyone" } : { kind: "others", author, acked: run };
}
