/** Documents as they are now: whole, with the seq they are at. */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { type InternalAnswer, refusal } from "../../shared/io/internal-http.ts";
import type { Served } from "../room-host.ts";
import type { RoomQuestion, RoomRoute } from "./http.ts";

export function readRoutes(serve: (room: RoomKey) => Promise<Served>): RoomRoute[] {
  const snapshot = async ({ room, header }: RoomQuestion): Promise<InternalAnswer> => {
    const served = await serve(room);
    return served.kind === "snapshot" ? snapshotAnswer(served, header("if-none-match")) : unserved(served);
  };
  return [{ method: "GET", place: "snapshot", answer: snapshot }];
}

function snapshotAnswer({ state, position }: Served & { kind: "snapshot" }, ifNoneMatch: string): InternalAnswer {
  const etag = `"${position.epoch}-${position.seq}"`;
  const headers = { "x-coroom-seq": position.seq, "x-coroom-epoch": position.epoch, etag };
  const known = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  if (known.includes(etag)) return { status: 304, name: "unchanged", headers };
  return { status: 200, name: "snapshot", headers: { ...headers, "content-type": "application/octet-stream" }, body: state };
}

function unserved(served: Exclude<Served, { kind: "snapshot" }>): InternalAnswer {
  switch (served.kind) {
    case "no-document":
      return refusal(404, "no-document", "this room never had an edit");
    case "not-a-document":
      return refusal(404, "not-a-document", "this room's edits are no Yjs updates: there is no snapshot of them, join from the start");
    case "loading":
      return refusal(503, "loading", "this room's document is not ready: ask again");
    default:
      return assertNever(served);
  }
}
