/** The figures of rooms on real gateways, from counts that are made up. */

import { expect, test } from "vitest";

import { countedFigures, membersElsewhere, predictedFigures, RECORDS } from "./routing.bench.ts";
import type { RoutedLeg } from "./routing-measures.ts";

const traffic = (fromNats: number) => ({ toNats: fromNats / 2, fromNats, bytesToNats: 0, bytesFromNats: 100 * fromNats });
const presence = { "gateway presence": traffic(40), "room server presence": traffic(20) };

/** Two rooms: one on two gateways, one on one. Gateways receive 10 heartbeats/s. */
const LEG: RoutedLeg = {
  seats: [new Map([[0, 3], [1, 1]]), new Map([[1, 4]])], // prettier-ignore
  predicted: [new Map([[0, 2], [1, 2]]), new Map([[1, 4]])], // prettier-ignore
  editsPerSecond: 20,
  quiet: {
    traffic: { ...presence, gateway: traffic(10 + 2 + 1), bench: traffic(500) },
    sent: [{ records: 0, announcements: 1 }, { records: 0, announcements: 1 }], // prettier-ignore
  },
  busy: {
    traffic: { ...presence, gateway: traffic(10 + 20 + 10 + 4), bench: traffic(900) },
    sent: [{ records: 10, announcements: 2 }, { records: 10, announcements: 0 }], // prettier-ignore
  },
  cpu: { gateway: 0.5 },
};

test("[ROUT2] records to gateways are counted without heartbeats and announcements", () => {
  const counted = countedFigures(LEG);
  expect(counted[RECORDS]).toBe(1.5);
  expect(counted).toMatchObject({ "announcements to gateways for an edit": 0.2, "records for an edit": 1 });
  expect(counted).toMatchObject({ "all messages/s from NATS": 44 + 40 + 20, "messages from NATS for an edit": (44 - 13) / 20 });
  expect(predictedFigures(LEG)).toMatchObject({ [RECORDS]: 1.5, "presence messages/s to gateways": 40 });
});

test("[ROUT3] members on another gateway than the model's are counted", () => {
  expect(membersElsewhere(LEG.seats, LEG.predicted)).toBe(1);
  expect(membersElsewhere(LEG.predicted, LEG.predicted)).toBe(0);
});
