import { expect, test } from "vitest";

import { ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import { LABEL_LENGTH_MAX } from "../shared/ids.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { roomHostOptions, roomServerSettings } from "./config.ts";

const read = (flags: Record<string, string>) => readSettings(roomServerSettings, { flags, env: {} });
const NATS_DEFAULT_MAX_PAYLOAD = 1024 * 1024;

test("[RCF1] the defaults fit a NATS server with its default limits", () => {
  expect(() => roomHostOptions(read({}), NATS_DEFAULT_MAX_PAYLOAD)).not.toThrow();
});

test("[RCF2] records larger than the maximum payload of NATS are refused at the start, with the settings that help", () => {
  expect(() => roomHostOptions(read({ recordBytesMax: "1000000" }), NATS_DEFAULT_MAX_PAYLOAD)).toThrow(
    /max_payload.*COROOM_RECORD_BYTES_MAX/,
  );
});

test("[RCF2] answers larger than the maximum payload of NATS are refused at the start", () => {
  expect(() => roomHostOptions(read({ answerBytesMax: "1000000" }), NATS_DEFAULT_MAX_PAYLOAD)).toThrow(
    /max_payload.*COROOM_ANSWER_BYTES_MAX/,
  );
});

test("[RCF3] a short secret is refused", () => {
  expect(() => read({ roomSecret: "short" })).toThrow(/--room-secret.*32/);
});

test("[RCF6] a name of a machine, zone or pool that no other process would accept in a heartbeat is refused", () => {
  for (const setting of ["serverHost", "serverZone", "serverPool"]) {
    expect(read({ [setting]: "x".repeat(LABEL_LENGTH_MAX) })).toMatchObject({ [setting]: "x".repeat(LABEL_LENGTH_MAX) });
    expect(() => read({ [setting]: "x".repeat(LABEL_LENGTH_MAX + 1) })).toThrow(/must have at most 64 characters/);
  }
  const labels = { host: "x".repeat(LABEL_LENGTH_MAX), zone: "", pool: "" };
  const heartbeat = { server: "a", rooms: 0, draining: false, time: 0 };
  expect(ServerHeartbeat.safeParse({ ...heartbeat, labels }).success).toBe(true);
  expect(ServerHeartbeat.safeParse({ ...heartbeat, labels: { ...labels, host: `${labels.host}x` } }).success).toBe(false);
});

test("[RCF4] a heartbeat interval so long that newly started processes would consider the server dead is refused", () => {
  expect(read({ heartbeatMs: "1000" }).heartbeatMs).toBe(1_000);
  expect(() => read({ heartbeatMs: "1001" })).toThrow(/--heartbeat-ms=1001 must be at most 1000.*COROOM_SERVER_SILENCE_MS_MAX/);
});
