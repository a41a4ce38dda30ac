/**
 * The application's first content of rooms, as the document service that holds the room makes an edit of it. The secret
 * and the address of the application are not known here.
 */

import { createHash } from "node:crypto";

import { ONLY_EDIT_COUNTER_MIN } from "../../../shared/bus/envelope.ts";
import { type RoomKey, tenantOf } from "../../../shared/ids.ts";
import { endpointFor, type WebhookEndpoint } from "../../../shared/settings/webhook-endpoints.ts";
import type { Log } from "../../../shared/process/log.ts";
import { rethrowMistake } from "../../../shared/time/pause.ts";
import { firstContentRequest, hasEditsRequest } from "../../http/document-requests.ts";
import type { ApplicationContents, FirstContentAnswer } from "../../ports.ts";
import type { ServiceDirectory } from "../nats/nats-services.ts";
import { bytesOf, callServices } from "./call-services.ts";

type FirstContentConfig = {
  readonly firstContentUrls: readonly WebhookEndpoint[];
  readonly internalSecret: string;
  readonly editBytesMax: number;
};

/** Undefined: the settings name no application. */
export function applicationContents(
  documents: ServiceDirectory,
  { firstContentUrls, internalSecret, editBytesMax }: FirstContentConfig,
  { log }: { readonly log: Log },
): ApplicationContents | undefined {
  if (firstContentUrls.length === 0) return undefined;
  const request = async (room: RoomKey): Promise<FirstContentAnswer> => {
    const { status, body = "" } = (await callServices(documents, firstContentRequest(room), {}, { internalSecret })) ?? { status: 503 };
    const bytes = await bytesOf(body); // An unread answer would keep its connection.
    if (status === 204) return { kind: "none" };
    if (status === 409 || status === 410) return { kind: "has-edits" };
    if (status !== 200) return { kind: "failed" };
    if (bytes.byteLength <= editBytesMax) return { kind: "content", edit: bytes, counter: counterOf(bytes) };
    log.error(
      { room, bytes: bytes.byteLength, editBytesMax },
      "the first content of a room is too large for one edit (COROOM_EDIT_BYTES_MAX); members wait outside",
    );
    return { kind: "failed" };
  };
  const hasEdits = async (room: RoomKey): Promise<boolean> => {
    const { status, body = "" } = (await callServices(documents, hasEditsRequest(room), {}, { internalSecret })) ?? { status: 503 };
    await bytesOf(body);
    return status === 409;
  };
  const unbroken = async <Answer>(room: RoomKey, asked: Promise<Answer>, otherwise: Answer): Promise<Answer> => {
    try {
      return await asked;
    } catch (cause) {
      rethrowMistake(cause);
      log.warn({ room, tenant: tenantOf(room), cause }, "an answer of the document service broke off; clients ask again");
      return otherwise;
    }
  };
  return {
    applicationOf: (tenant) => endpointFor(tenant, firstContentUrls)?.name,
    hasEdits: (room) => unbroken(room, hasEdits(room), false),
    requestContent: (room) => unbroken(room, request(room), { kind: "failed" }),
  };
}

/** Other content under the same key has another counter, so the owner refuses it instead of acknowledging it. */
function counterOf(edit: Uint8Array): number {
  return ONLY_EDIT_COUNTER_MIN + createHash("sha256").update(edit).digest().readUInt32BE();
}
