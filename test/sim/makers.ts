/**
 * Two writers that create one room's document from content, each over another gateway, as `PUT …/document` does. Each
 * sends an edit that must be the first, and repeats it over either gateway until it receives a final answer.
 */

import { clientIdOf } from "../../gateway/io/client-ids.ts";
import type { WriteOutcome } from "../../gateway/rooms/writes-host.ts";
import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import { type ClientKey, type RoomKey, type Seq, tenantOf, type UserId } from "../../shared/ids.ts";
import type { Cluster } from "./cluster.ts";
import type { Met, Strike } from "./strike.ts";
import { keystroke, MAKERS, MAKERS_FROM } from "./keystrokes.ts";

const AGAIN_MS = 1_500;
/** Time between attempts while no gateway is ready. */
const SOON_MS = 10;

export const makeDocument: Strike = (cluster, { whom, how }) => {
  const { room } = cluster.tab(whom);
  const makers = Array.from({ length: MAKERS }, (_, index) => make(cluster, room, MAKERS_FROM + index, how + index / MAKERS));
  return () => makers.every((isAnswered) => isAnswered());
};

/** `how`: selects the first gateway. Returns whether the edit has a final answer. */
function make(cluster: Cluster, room: RoomKey, author: number, how: number): Met {
  const { judge, scheduler, trace } = cluster.world;
  const user = `maker-${author}` as UserId;
  const client = clientIdOf(tenantOf(room), user, "content" as ClientKey);
  const edit: SubmittedEdit = {
    author: { user, client },
    counter: 1,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    payload: keystroke({ author, index: 0 }),
    mustBeFirst: true,
  };
  let attempts = 0;
  const isAnswered: Met = () => judge.room(room).firstEdits.get(client) !== "asked";
  const receive = (outcome: WriteOutcome): void => {
    trace.note(`${user} is answered: ${outcome.kind}${outcome.kind === "refused" ? `, ${outcome.reason}` : ""}`, room);
    if (outcome.kind === "committed") judge.receiveFirstEditAnswered(room, client, "committed");
    else if (outcome.kind === "refused" && (outcome.reason === "not-first" || outcome.reason === "deleted"))
      judge.receiveFirstEditAnswered(room, client, outcome.reason);
  };
  const ask = (): void => {
    if (isAnswered()) return;
    const gateway = cluster.gateway({ whom: (how + attempts / MAKERS) % 1 });
    if (gateway.isUp) {
      attempts += 1;
      gateway.process.run(() => void gateway.write(room, edit).then(receive));
    }
    scheduler.after(gateway.isUp ? AGAIN_MS : SOON_MS, ask);
  };
  judge.receiveFirstEditAsked(room, client);
  ask();
  return isAnswered;
}
