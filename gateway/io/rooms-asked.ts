/** Which room an HTTP request is about, if its token opens it. */

import { parseRoomId, type RoomId } from "../../shared/ids.ts";
import { admit, type Identity } from "../sessions/identity.ts";
import { decodeParameter } from "./ask-services.ts";
import { errorAnswer, type HttpAnswer, type HttpQuestion } from "./http-routes.ts";

/** The room is the path's first parameter. */
export function admittedRoom({ parameters }: HttpQuestion, identity: Identity): RoomId | HttpAnswer {
  const room = parseRoomId(decodeParameter(parameters[0] ?? ""));
  if (room === undefined) return errorAnswer(404, "no-such-room", "a room id has 1 to 128 characters and no control characters");
  const admission = admit(identity, room);
  return admission.kind === "refused" ? errorAnswer(403, "not-allowed", admission.why) : room;
}
