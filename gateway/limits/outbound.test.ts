import { expect, test } from "vitest";

import { OutboundLag } from "./outbound.ts";

const LOOK_MS = 250;
const options = { slowBytesMax: 100_000, slowMsMax: 1_000, lookMs: LOOK_MS };

/** After each check: the age of the oldest unread data, and whether the client is slow. */
function look(outbound: OutboundLag, ...looks: readonly { sent: number; waiting: number }[]): { ageMs: number; slow: boolean }[] {
  return looks.map(({ sent, waiting }) => {
    outbound.receiveCheck(sent, waiting);
    return { ageMs: outbound.ageMs, slow: outbound.isSlow() };
  });
}

test("[OUT1] a client that reads nothing is slow once its oldest unread data is older than a second, even if it is little data", () => {
  const seen = look(new OutboundLag(options), ...Array.from({ length: 6 }, (_, index) => ({ sent: 10, waiting: 10 * (index + 1) })));
  expect(seen.map(({ ageMs }) => ageMs)).toEqual([0, 250, 500, 750, 1_000, 1_250]);
  expect(seen.map(({ slow }) => slow)).toEqual([false, false, false, false, false, true]);
});

test("[OUT2] a client whose queue is never empty but who reads everything within a second is not slow", () => {
  const seen = look(
    new OutboundLag(options),
    { sent: 300, waiting: 300 },
    ...Array.from({ length: 40 }, () => ({ sent: 100, waiting: 300 })),
  );
  for (const { ageMs, slow } of seen) expect([ageMs <= 750, slow]).toEqual([true, false]);
});

test("[OUT3] a client that reads a large catch-up is not slow while fewer bytes wait than a second ago", () => {
  const seen = look(
    new OutboundLag(options),
    ...Array.from({ length: 30 }, (_, index) => ({ sent: index === 0 ? 3_000_000 : 0, waiting: 3_000_000 - index * 100_000 })),
  );
  expect(seen.every(({ slow }) => !slow)).toBe(true);
});

test("[OUT4] a client with many unread bytes, and no fewer than a second ago, is slow although none of them is old", () => {
  const seen = look(new OutboundLag(options), ...Array.from({ length: 5 }, () => ({ sent: 200_000, waiting: 200_000 })));
  expect(seen.map(({ ageMs, slow }) => [ageMs, slow])).toEqual([...Array.from({ length: 4 }, () => [0, false]), [0, true]]);
});

test("[OUT5] a gateway that paused considers no client slow, because age is counted in checks", () => {
  const outbound = new OutboundLag(options);
  look(outbound, { sent: 10, waiting: 10 }, { sent: 10, waiting: 20 });
  expect(look(outbound, { sent: 0, waiting: 0 }).at(-1)).toEqual({ ageMs: 0, slow: false });
});

test("[OUT6] uncounted bytes, such as frame headers, do not increase the age of unread data", () => {
  const seen = look(new OutboundLag(options), ...Array.from({ length: 40 }, () => ({ sent: 100, waiting: 120 })));
  for (const { ageMs, slow } of seen) expect([ageMs <= 250, slow]).toEqual([true, false]);
});

test("[OUT7] a client that catches up may read in steps of several seconds, unless it reads nothing or many bytes wait", () => {
  const steps = Array.from({ length: 60 }, (_, index) => ({ sent: index % 20 === 0 ? 90_000 : 0, waiting: 90_000 }));
  const slowest = (outbound: OutboundLag, checks: readonly { sent: number; waiting: number }[], isCatchingUp: boolean): boolean =>
    checks.some(({ sent, waiting }) => {
      outbound.receiveCheck(sent, waiting);
      return outbound.isSlow(isCatchingUp);
    });
  expect([false, true].map((isCatchingUp) => slowest(new OutboundLag(options), steps, isCatchingUp))).toEqual([true, false]);
  const [stalled, many] = [Array.from({ length: 60 }, () => 90_000), Array.from({ length: 5 }, () => 200_000)];
  for (const waits of [stalled, many]) {
    const checks = waits.map((waiting, index) => ({ sent: index === 0 ? waiting : 0, waiting }));
    expect(slowest(new OutboundLag(options), checks, true)).toBe(true);
  }
});
