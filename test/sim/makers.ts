/**
 * Two who make one room's document of content, each through another gateway, as `PUT …/document` does it: with an edit
 * that must be the first, sent again as it is, through either gateway, until it is answered for good.
 */

import { clientIdOf } from "../../gateway/io/client-ids.ts";
import type { WriteOutcome } from "../../gateway/rooms/writes-host.ts";
import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import { type ClientKey, type RoomKey, type Seq, tenantOf, type UserId } from "../../shared/ids.ts";
import type { Cluster } from "./cluster.ts";
import type { Met, Strike } from "./strike.ts";
import { keystroke } from "./keystrokes.ts";

const MAKERS = 2;
/** What they write are keystrokes of authors who are no tabs. */
const AUTHORS_FROM = 240;
const AGAIN_MS = 1_500;
/** Nobody can be asked before the gateway is up. */
const SOON_MS = 10;

export const makeDocument: Strike = (cluster, { whom, how }) => {
  const { room } = cluster.tab(whom);
  const makers = Array.from({ length: MAKERS }, (_, index) => make(cluster, room, AUTHORS_FROM + index, how + index / MAKERS));
  return () => makers.every((isAnswered) => isAnswered());
};

/** `how`: through which gateway first. Tells whether it is answered. */
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
