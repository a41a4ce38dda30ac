/** Faults of the application that gives first content, and a backend that edits a new room over HTTP. */

import type { ApplicationState } from "./application.ts";
import type { PostAnswer } from "./keyed-writes.ts";
import { keystroke } from "./keystrokes.ts";
import { never } from "./process-faults.ts";
import type { Strike } from "./strike.ts";

/** Author number of the backend, which is no tab. */
const BACKEND = 244;
const USER = `backend-${BACKEND}`;
const AGAIN_MS = 800;
/** Time between attempts while no gateway is ready. */
const SOON_MS = 10;

export function setApplication(state: ApplicationState): Strike {
  return (cluster, { forMs }) => {
    const { application } = cluster.world;
    if (application === undefined) return never;
    const before = application.spoiltEver;
    application.state = state;
    let met = false;
    cluster.later(forMs, () => {
      met = application.spoiltEver > before;
      if (application.state === state) application.state = "well"; // Another fault may have begun.
    });
    return () => met;
  };
}

/** Sends an edit as `POST …/edits`, over any gateway, until it is in the log or the room is deleted. */
export const postEdit: Strike = (cluster, { whom, how }) => {
  const { application, judge, scheduler, trace } = cluster.world;
  if (application === undefined) return never;
  const { room } = cluster.tab(whom);
  let attempts = 0;
  const receive = ({ status }: PostAnswer): void => {
    trace.note(`the backend is answered: ${status}`, room);
    if (status === 200 || status === 410) application.receivePostAnswered(room, BACKEND, status === 200);
  };
  const ask = (): void => {
    if (application.isPosted(room, BACKEND)) return;
    const gateway = cluster.gateway({ whom: (how + attempts / 2) % 1 });
    if (gateway.isUp) {
      attempts += 1;
      const body = keystroke({ author: BACKEND, index: 0 });
      gateway.process.run(() => void gateway.post("edits", room, { user: USER, key: USER, body }).then(receive));
    }
    scheduler.after(gateway.isUp ? AGAIN_MS : SOON_MS, ask);
  };
  application.receivePosted(room, BACKEND);
  ask();
  return () => judge.room(room).accountedFor(BACKEND) > 0;
};
