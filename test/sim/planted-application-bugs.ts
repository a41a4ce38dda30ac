/** Bugs in the handling of first content that the simulator must find: see `planted-bugs.ts`. */

import type { Fault } from "./faults.ts";
import type { PlantedBug } from "./planted-bugs.ts";
import type { Size } from "./sizes.ts";

const applicationStarting = ({ faultyMs }: Size): readonly Fault[] => [
  { kind: "application starting", atMs: 0, forMs: faultyMs, whom: 0, how: 0 },
];

/** Rooms open empty while the application cannot answer. */
const failureTakenForNone: PlantedBug = {
  name: "failed application taken for one without content",
  applicationContents: (contents) => ({
    ...contents,
    requestContent: async (room) => {
      const answer = await contents.requestContent(room);
      return answer.kind === "failed" ? { kind: "none" } : answer;
    },
  }),
  faults: applicationStarting,
};

/** A room whose request failed stays closed, although the application has recovered. */
const failureWithoutOutcome: PlantedBug = {
  name: "failed request for first content never settles",
  applicationContents: (contents) => ({
    ...contents,
    requestContent: (room) =>
      new Promise((resolve) => void contents.requestContent(room).then((answer) => answer.kind !== "failed" && resolve(answer))),
  }),
  faults: applicationStarting,
};

/** An edit over HTTP becomes the first of a new room, and the content is refused. */
const postNotWaiting: PlantedBug = {
  name: "edit over HTTP does not wait for first content",
  applicationContents: (contents) => ({ ...contents, hasEdits: () => Promise.resolve(true) }),
  faults: (size) => [...applicationStarting(size), { kind: "new room edited over HTTP", atMs: 600, forMs: 100, whom: 0, how: 0 }],
};

/** Bugs that show only in runs with an application. */
export const PLANTED_APPLICATION_BUGS: readonly PlantedBug[] = [failureTakenForNone, failureWithoutOutcome, postNotWaiting];
