/**
 * Documents written over HTTP: an edit, a new document made from content, or the restore of an old state. The document
 * service makes one edit of the body. The edit takes the path of every edit, and the answer is sent once the log
 * contains it. `document-service/openapi.json` describes each route.
 */

import { createHash, randomUUID } from "node:crypto";

import type { RoomKey } from "../../../shared/ids.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import type { BoardHost } from "../../boards/board-host.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { userKey } from "../../limits/quotas.ts";
import { NO_DOCUMENT_SERVICE, NO_FIRST_CONTENT } from "../../http/document-requests.ts";
import {
  CREATE,
  EDIT,
  editOf,
  madeEdit,
  makingRequest,
  refuseContentType,
  RESTORE,
  storageFull,
  TOO_MANY_WRITES,
  writeAnswer,
  type WritePlan,
  writerOf,
} from "../../http/document-writes.ts";
import { type EditNaming, editNameOf } from "../../http/idempotency.ts";
import type { HttpRoute } from "../../http/route-table.ts";
import { type Rate, UserRates } from "../../limits/reader-rates.ts";
import type { StorageLimitsHost } from "../../limits/storage-limits-host.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { FirstContents } from "../../rooms/first-content-host.ts";
import type { FollowedRoomsHost } from "../../rooms/room-host.ts";
import type { WritesHost } from "../../rooms/writes-host.ts";
import type { ClientSessionOptions } from "../../sessions/client-session.ts";
import type { ServiceDirectory } from "../nats/nats-services.ts";
import { forBearers, type HttpTokens } from "./authenticate.ts";
import { unlessBroken } from "./broken-answers.ts";
import { bytesOf, callServices } from "./call-services.ts";

export type DocumentWritePorts = {
  readonly tokens: HttpTokens;
  readonly documents: ServiceDirectory;
  readonly writes: Pick<WritesHost, "write">;
  readonly boards: Pick<BoardHost, "receiveWriter">;
  readonly storage: Pick<StorageLimitsHost, "fullOn">;
  readonly rooms: Pick<FollowedRoomsHost, "positionOf">;
  readonly contents?: Pick<FirstContents, "isAskedFor" | "load" | "loadUnlessEdited"> | undefined;
  readonly clientIdOf: ClientSessionOptions["clientIdOf"];
};
type DocumentWriteOptions = {
  readonly internalSecret: string;
  readonly eachUser: Rate;
  readonly writersMax: number;
  readonly editBytesMax: number;
};

const MAKING_MS_MAX = 15_000;
const HASHES: Omit<EditNaming, "randomKey"> = {
  digest: (of) => createHash("sha256").update(of).digest("base64url"),
  number: (of) => createHash("sha256").update(of).digest().readUInt32BE(),
};

export function documentWriteRoutes(
  { tokens, documents, writes, boards, storage, rooms, contents, clientIdOf }: DocumentWritePorts,
  options: DocumentWriteOptions,
  { clock, metrics, randomKey = randomUUID }: { clock: Clock; metrics: GatewayMetrics; randomKey?: EditNaming["randomKey"] },
): HttpRoute[] {
  const naming = { ...HASHES, randomKey };
  const rates = new UserRates(options.eachUser, options.writersMax);

  /** An edit of a room without any edit follows the content of the application. */
  const isContentMissing = async (room: RoomKey): Promise<boolean> => {
    if (contents?.isAskedFor(room) !== true || (rooms.positionOf(room)?.seq ?? 0) > 0) return false;
    return (await contents.loadUnlessEdited(room)) === "failed";
  };

  const write = (plan: WritePlan): HttpRoute["answer"] =>
    forBearers(tokens, async (request, identity) => {
      const writer = writerOf(request, identity);
      if ("status" in writer) return writer;
      const full = storage.fullOn(writer.room);
      if (full !== undefined) {
        metrics.limitsReached.inc({ limit: "stored-bytes" });
        return storageFull(full);
      }
      if (!rates.take(userKey(identity), clock.now())) {
        metrics.limitsReached.inc({ limit: "document-writes" });
        return TOO_MANY_WRITES;
      }
      if (plan === EDIT && (await isContentMissing(writer.room))) return NO_FIRST_CONTENT;
      // The client's signal does not end this call: the same edit may be requested again.
      const making = { signal: AbortSignal.timeout(MAKING_MS_MAX) };
      const made = (await callServices(documents, makingRequest(writer, plan, request), making, options)) ?? NO_DOCUMENT_SERVICE;
      if (made.status !== 200 || made.body === undefined) return made;
      const bytes = await unlessBroken(bytesOf(made.body));
      if (bytes === undefined) return NO_DOCUMENT_SERVICE;
      const payload = madeEdit(bytes, options.editBytesMax);
      if (!(payload instanceof Uint8Array)) return payload;
      const { key, counter } = editNameOf(request, plan, naming);
      const name = { client: clientIdOf(identity.tenant, identity.user, key), counter };
      const outcome = await writes.write(writer.room, editOf(writer, name, payload, plan));
      // Without a claim `name` it is the user id, and the user may have joined with a better one.
      if (outcome.kind === "committed" && identity.name !== identity.user) boards.receiveWriter(writer.room, identity.user, identity.name);
      return writeAnswer(outcome, plan.status);
    });
  const writeEdit = write(EDIT);
  const edit: HttpRoute["answer"] = (request): HttpAnswer | Promise<HttpAnswer> => refuseContentType(request) ?? writeEdit(request);

  const { editBytesMax: bodyBytesMax } = options;
  return [
    { method: "post", path: "/v1/rooms/:room/restore", answer: write(RESTORE) },
    { method: "post", path: "/v1/rooms/:room/edits", answer: edit, bodyBytesMax },
    { method: "put", path: "/v1/rooms/:room/document", answer: write(CREATE), bodyBytesMax },
  ];
}
