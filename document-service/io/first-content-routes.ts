/**
 * The HTTP route of a room's first content: an edit made of the application's answer. The service that holds the room
 * asks once for all gateways that request it at the same time. Nothing is written here: the gateway sends the edit, and
 * the room's owner accepts it only as the first. Repeats and races are therefore safe.
 */

import { assertNever } from "../../shared/assert.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { type InternalResponse, refusal } from "../../shared/io/internal-http.ts";
import { limitedLog } from "../../shared/process/limited-log.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { ApplicationAnswer, EditMaking } from "../ports.ts";
import type { RoomRoute } from "./http.ts";
import type { Documents } from "./read-routes.ts";
import { DELETED, editResponse, madeOf } from "./write-routes.ts";

type FirstContentDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: DocumentServiceMetrics };

const LOADING = refusal(503, "loading", "this room's document is not ready: ask again");
const HAS_EDITS = refusal(409, "document-exists", "the room has edits, so the application is not asked");
const NO_EDITS: InternalResponse = { status: 204, name: "no-edits" };
const NONE: InternalResponse = { status: 204, name: "no-first-content" };
/** `Y.encodeStateAsUpdate` of a document without content. */
const EMPTY_UPDATE = "0,0";

/** `ask`: asks the application. Never rejects. */
export function firstContentRoutes(
  documents: Documents,
  making: EditMaking,
  ask: (room: RoomKey) => Promise<ApplicationAnswer>,
  { clock, log: everyLine, metrics }: FirstContentDeps,
): RoomRoute[] {
  const log = limitedLog(everyLine, clock);
  const made = async (room: RoomKey, answer: ApplicationAnswer): Promise<InternalResponse> => {
    switch (answer.kind) {
      case "none":
        return NONE;
      case "content": {
        const { content, contentType } = answer;
        if (content.byteLength <= EMPTY_UPDATE.length && content.join() === EMPTY_UPDATE) return NONE;
        const question = { room, header: (name: string) => (name === "content-type" ? contentType : ""), query: new URLSearchParams() };
        const response = editResponse(await madeOf(making, question, content));
        if (response.status === 200) return response;
        const why = `its content is refused: ${String(response.body)}`;
        return failed(room, response.status === 503 ? `${why}. It is asked again` : why);
      }
      case "failed":
        return failed(room, answer.why);
      default:
        return assertNever(answer);
    }
  };
  const failed = (room: RoomKey, why: string): InternalResponse => {
    log.warn({ room, why }, "the application gave no first content of a room; members wait outside until it does");
    return refusal(502, "no-first-content", why); // Not 503: the next service would be asked.
  };
  const askAndMake = async (room: RoomKey): Promise<InternalResponse> => {
    const began = clock.now();
    const response = await made(room, await ask(room));
    const outcome = response === NONE ? "none" : response.status === 200 ? "content" : "failed";
    metrics.firstContentSeconds.observe({ outcome }, (clock.now() - began) / 1000);
    return response;
  };

  const underWay = new Map<RoomKey, Promise<InternalResponse>>();
  const askOnce = (room: RoomKey): Promise<InternalResponse> => {
    const running = underWay.get(room);
    if (running !== undefined) return running;
    const begun = askAndMake(room).finally(() => {
      underWay.delete(room);
      metrics.firstContents.set(underWay.size);
    });
    underWay.set(room, begun);
    metrics.firstContents.set(underWay.size);
    return begun;
  };

  const answer = async ({ room }: { readonly room: RoomKey }): Promise<InternalResponse> => {
    if (!documents.holds(room)) return LOADING;
    if (await documents.hasEdit(room, 1)) return HAS_EDITS;
    const served = await documents.serve(room, "joinable"); // The log may have lost what a checkpoint covers.
    switch (served.kind) {
      case "no-document":
        return askOnce(room);
      case "deleted":
        return DELETED;
      case "loading":
        return LOADING;
      case "behind":
      case "snapshot":
      case "not-a-document":
      case "stalled":
        return HAS_EDITS;
      default:
        return assertNever(served);
    }
  };
  /** The end of the log is the same for every service. */
  const check = async ({ room }: { readonly room: RoomKey }): Promise<InternalResponse> =>
    (await documents.hasEdit(room, 1)) ? HAS_EDITS : NO_EDITS;
  return [
    { method: "GET", place: "first-content", answer: check },
    { method: "POST", place: "first-content", answer },
  ];
}
