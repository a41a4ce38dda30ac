/** Points for tests: small numbers, so that caps and ties come often. */

import type { ProjectionOptions } from "../counting/room-projection.ts";

export const SCORING: ProjectionOptions = {
  boardRoles: ["everyone", "editors", "commenters"],
  boardEditPointsSmall: 1,
  boardEditPointsMedium: 2,
  boardEditPointsLarge: 5,
  boardEditMediumBytesMin: 10,
  boardEditLargeBytesMin: 30,
  boardPointsPerMinuteMax: 7,
  boardKinds: [
    { name: "comment", points: 3, role: "commenters" },
    { name: "review", points: 4, role: "everyone" },
  ],
  boardKindPointsPerMinuteMax: 9,
  boardSessionPoints: 2,
  boardSessionMs: 300_000,
};
