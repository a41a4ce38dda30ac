import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { EditSendRate } from "./client-rates.ts";

const LIMITS = { editBurst: 30, editsPerSecond: 10, editBytesMax: 500, bytesBurst: 2_000, bytesPerSecond: 1_000 };
const at = (ms: number): Millis => (1_000_000 + ms) as Millis;

/** All frames sent so far have arrived, and are confirmed. */
function arriveAll(rate: EditSendRate, ms: number): void {
  rate.markAsked();
  rate.receiveArrival(at(ms));
}

/** The times at which edits are sent if one always waits, on a network without delay. */
function sendTimes(rate: EditSendRate, untilMs: number): number[] {
  const times: number[] = [];
  for (let ms = 0; ms <= untilMs; ms++) {
    while (rate.take(at(ms))) times.push(ms);
    arriveAll(rate, ms);
  }
  return times;
}

test("[PAC1] an idle client's edits go out at once, a busy client's below the limit", () => {
  const times = sendTimes(new EditSendRate(LIMITS, at(0)), 60_000);
  expect(times.filter((ms) => ms === 0)).toHaveLength(21);
  expect(times.length).toBeLessThan(21 + 9 * 60 + 1);
});

test("[PAC2] the server's bucket never runs empty, even when the network delays edits by up to a second", () => {
  const times = sendTimes(new EditSendRate(LIMITS, at(0)), 30_000).map((ms) => (ms % 3_000 < 1_000 ? ms - (ms % 3_000) + 1_000 : ms));
  let tokens = LIMITS.editBurst;
  let filledAt = 0;
  for (const ms of times) {
    tokens = Math.min(LIMITS.editBurst, tokens + ((ms - filledAt) * LIMITS.editsPerSecond) / 1000) - 1;
    filledAt = ms;
    expect(tokens).toBeGreaterThanOrEqual(0);
  }
});

test("[PAC1] the limiter names the time at which the next edit may be sent", () => {
  const rate = new EditSendRate(LIMITS, at(0));
  expect(rate.nextAt(at(0))).toBe(at(0));
  for (let sent = 0; sent < 21; sent++) rate.take(at(0));
  arriveAll(rate, 0);
  const next = rate.nextAt(at(0));
  expect(rate.take((next - 1) as Millis)).toBe(false);
  expect(rate.take(next)).toBe(true);
});

test("[PAC2] a clock that jumps ahead allows one burst at most", () => {
  const rate = new EditSendRate(LIMITS, at(0));
  while (rate.take(at(0)));
  while (rate.take(at(-5_000)));
  arriveAll(rate, -5_000);
  let sent = 0;
  while (rate.take(at(1e9))) sent += 1;
  expect(sent).toBe(21);
});

test("[PAC3] large edits go out below the byte rate, even when they are few", () => {
  const rate = new EditSendRate(LIMITS, at(0));
  let [left, filledAt, sent] = [LIMITS.bytesBurst, 0, 0];
  for (let ms = 0; ms <= 30_000; ms++) {
    while (rate.take(at(ms))) {
      const bytes = sent % 3 === 0 ? LIMITS.editBytesMax : 100;
      rate.spend(bytes, at(ms));
      left = Math.min(LIMITS.bytesBurst, left + ((ms - filledAt) * LIMITS.bytesPerSecond) / 1000) - bytes;
      filledAt = ms;
      sent += 1;
      expect(left).toBeGreaterThanOrEqual(0);
    }
    arriveAll(rate, ms);
  }
  expect(sent).toBeGreaterThan(100);
});

test("[PAC3] the limiter names the time at which an edit that waits for bytes may be sent", () => {
  const rate = new EditSendRate(LIMITS, at(0));
  while (rate.take(at(0))) rate.spend(LIMITS.editBytesMax, at(0));
  arriveAll(rate, 0);
  const next = rate.nextAt(at(0));
  expect(next).toBeGreaterThan(at(0));
  expect(rate.take((next - 1) as Millis)).toBe(false);
  expect(rate.take(next)).toBe(true);
});

test("[PAC4] unconfirmed edits and the edits that may be sent now are one burst together, at any network delay", () => {
  const rate = new EditSendRate(LIMITS, at(0));
  while (rate.take(at(0)));
  rate.markAsked();
  let [sent, looked] = [0, 0];
  for (let now = at(0); now < at(75_000); now = rate.nextAt(now), looked++) if (rate.take(now)) sent += 1;
  expect([sent, looked > 1_000]).toEqual([0, false]);
  rate.receiveArrival(at(75_000)); // The bucket fills from now on, as the server's does.
  expect(rate.take(at(75_000))).toBe(false);
  expect(rate.take(at(75_112))).toBe(true);
});

test("[PAC4] unconfirmed bytes and the bytes that may be sent now are one burst together", () => {
  const rate = new EditSendRate(LIMITS, at(0));
  let bytes = 0;
  for (let ms = 0; ms <= 75_000; ms += 100) {
    while (rate.take(at(ms))) {
      bytes += 250;
      rate.spend(250, at(ms));
    }
  }
  expect(bytes).toBeLessThanOrEqual(LIMITS.bytesBurst);
});
