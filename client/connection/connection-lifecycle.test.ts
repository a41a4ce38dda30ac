import { expect, test } from "vitest";

import type { ClientId, Epoch, Millis, Seq } from "../../shared/ids.ts";
import { CLOSE, CLOSE_MEANINGS } from "../../shared/wire/close-codes.ts";
import type { Channel, Limits, ServerFrame } from "../../shared/wire/frames.ts";
import { ConnectionLifecycle, type ConnectionLifecycleOptions } from "./connection-lifecycle.ts";
import type { ConnectionInput } from "./connection-messages.ts";

const LIMITS: Limits = {
  pingIntervalMs: 30_000,
  silenceMsMax: 75_000,
  frameBytesMax: 1_000,
  editBytesMax: 120_000,
  editBurst: 30,
  editsPerSecond: 10,
  bytesBurst: 100_000,
  bytesPerSecond: 10_000,
  presenceBurst: 60,
  presencePerSecond: 30,
  presenceBytesMax: 8_192,
  presenceFieldsMax: 64,
  controlBurst: 300,
  controlsPerSecond: 20,
};
const WELCOME: ServerFrame = { type: "welcome", version: 1, connection: "c", limits: LIMITS, tokenExpiresInMs: 3_600_000 };
const OPTIONS: ConnectionLifecycleOptions = {
  agent: "test",
  tokenIsFixed: false,
  tokenMsMax: 30_000,
  renewShare: 0.8,
  renewMsMin: 3_000,
  openMsMax: 10_000,
  unansweredMsMax: 10_000,
  checkMsMax: 5_000,
  retryMsMax: 300_000,
  banMsMax: 86_400_000,
  healthyAfterMs: 5_000,
  quickRetryMs: 400,
  backoff: { baseMs: 500, maxMs: 15_000, jitterMs: 5_000 },
  lostBackoff: { baseMs: 500, maxMs: 1_000, jitterMs: 3_000 },
  lostMsMax: 60_000,
};
const JOINED: ServerFrame = {
  type: "joined",
  request: 1,
  channel: 1 as Channel,
  client: "c" as ClientId,
  epoch: 1 as Epoch,
  head: 0 as Seq,
  rights: { read: true, write: true },
};

/** A connection, the time, and the effects of each input. */
class Driver {
  readonly connection: ConnectionLifecycle;
  now = 1_000_000 as Millis;

  constructor(options: Partial<ConnectionLifecycleOptions> = {}, unit = 0.5) {
    this.connection = new ConnectionLifecycle({ ...OPTIONS, ...options }, () => unit);
  }

  receive(input: ConnectionInput): string[] {
    return this.connection.receiveInput(input, this.now).map((effect) => {
      if (effect.kind === "send") return `send ${effect.frame.type}`;
      if (effect.kind === "refused") return `refused: ${effect.refusal.message}`;
      return effect.kind === "problem" ? `problem: ${effect.problem.kind}` : effect.kind;
    });
  }

  /** Advances time until something is due, and returns how long that took. */
  untilDue(): number {
    const due = this.connection.dueAt!;
    const passed = due - this.now;
    this.now = due;
    return passed;
  }

  tick(): string[] {
    return this.receive({ kind: "tick" });
  }

  sends(bytes: number): void {
    this.connection.receiveSent(bytes, this.now);
  }

  open(): void {
    if (this.connection.status === "disconnected") this.receive({ kind: "connect" });
    this.receive({ kind: "token", token: "t" });
    this.receive({ kind: "socket-opened" });
    this.receive({ kind: "frame", frame: WELCOME });
    expect(this.connection.status).toBe("connected");
  }

  /** The connection was healthy before. */
  close(code: number): string[] {
    this.open();
    this.now = (this.now + OPTIONS.healthyAfterMs) as Millis;
    return this.receive({ kind: "socket-closed", code });
  }
}

test("[CON1] a connection opens with a token, a socket, HELLO and WELCOME", () => {
  const driver = new Driver();
  expect(driver.connection.status).toBe("disconnected");
  expect(driver.receive({ kind: "connect" })).toEqual(["ask-token"]);
  expect(driver.receive({ kind: "token", token: "t" })).toEqual(["open-socket"]);
  expect(driver.connection.receiveInput({ kind: "socket-opened" }, driver.now)).toEqual([
    { kind: "send", frame: { type: "hello", version: 1, token: "t", agent: "test" } },
  ]);
  expect(driver.connection.status).toBe("connecting");
  expect(driver.connection.receiveInput({ kind: "frame", frame: WELCOME }, driver.now)).toEqual([
    { kind: "connection-open", limits: LIMITS },
  ]);
  expect(driver.connection.status).toBe("connected");
});

test("[CON2] the first retry after a healthy connection comes quickly, later ones after growing waits with up to 5 s of jitter", () => {
  const driver = new Driver();
  expect(driver.close(1006)).toEqual(["close-socket", "connection-lost"]);
  const waits: number[] = [];
  for (let attempt = 0; attempt < 8; attempt++) {
    expect(driver.connection.status).toBe("waiting");
    waits.push(driver.untilDue());
    expect(driver.tick()).toEqual(["ask-token"]);
    driver.receive({ kind: "token", token: "t" });
    expect(driver.receive({ kind: "socket-closed", code: 1006 })).toEqual(["close-socket"]);
  }
  expect(waits).toEqual([200, 3_000, 3_500, 4_500, 6_500, 10_500, 17_500, 17_500]);
});

test.each([1008, 1009])(
  "[CON31] a proxy that closes connections with %i does not stop the client, which tries after growing waits",
  (code) => {
    const driver = new Driver();
    driver.close(code);
    const waits: number[] = [];
    for (let attempt = 0; attempt < 4; attempt++) {
      expect(driver.connection.status).toBe("waiting");
      waits.push(driver.untilDue());
      driver.tick();
      driver.receive({ kind: "token", token: "t" });
      driver.receive({ kind: "socket-opened" });
      driver.receive({ kind: "frame", frame: WELCOME });
      driver.receive({ kind: "socket-closed", code });
    }
    expect(waits).toEqual([200, 3_000, 3_500, 4_500]);
  },
);

/** Kills of the server, each shortly after the client joined its room, with two attempts in between. */
function crashLoop(driver: Driver, kills: number): number[] {
  const waits: number[] = [];
  for (let kill = 0; kill < kills; kill++) {
    driver.open();
    driver.receive({ kind: "frame", frame: JOINED });
    driver.now = (driver.now + 1_000) as Millis;
    driver.receive({ kind: "socket-closed", code: 1006 });
    for (let attempt = 0; attempt < 3; attempt++) {
      waits.push(driver.untilDue());
      driver.tick();
      driver.receive({ kind: "token", token: "t" });
      if (attempt < 2) driver.receive({ kind: "socket-closed", code: 1006 });
    }
  }
  return waits;
}

test("[CON25] while a server that admitted the client to a room crashes repeatedly, no wait exceeds 4 s", () => {
  const driver = new Driver({}, 0.999);
  const waits = crashLoop(driver, 10);
  expect(Math.max(...waits)).toBeLessThan(4_000);
  expect(Math.min(...waits.slice(1)), "spread by chance, never quick").toBeGreaterThan(3_000);
});

test("[CON25] a server that stays away for a minute is tried after growing waits again", () => {
  const driver = new Driver();
  driver.open();
  driver.receive({ kind: "frame", frame: JOINED });
  const lostAt = driver.now;
  driver.receive({ kind: "socket-closed", code: 1006 });
  const waits: number[] = [];
  while (driver.now - lostAt < 120_000) {
    waits.push(driver.untilDue());
    driver.tick();
    driver.receive({ kind: "token", token: "t" });
    driver.receive({ kind: "socket-closed", code: 1006 });
  }
  expect(waits.slice(0, 4)).toEqual([200, 2_000, 2_500, 2_500]);
  expect([waits.filter((wait) => wait === 2_500).length, waits.at(-1)]).toEqual([24, 17_500]);
});

test.each([
  ["closes it for its behaviour", (driver: Driver) => driver.receive({ kind: "socket-closed", code: CLOSE.tooSlow.code }), 17_500],
  [
    "asks it to come later",
    (driver: Driver) => {
      driver.receive({ kind: "frame", frame: { type: "retry-later", retryAfterMs: 20_000 } });
      driver.receive({ kind: "socket-closed", code: CLOSE.overloaded.code });
    },
    30_000,
  ],
] as const)("[CON25] a server that %s is not lost: the client waits longer each time", (_, close, waitMs) => {
  const driver = new Driver();
  crashLoop(driver, 2);
  driver.open();
  driver.receive({ kind: "frame", frame: JOINED });
  close(driver);
  expect(driver.untilDue()).toBe(waitMs);
});

test("[CON19] while the client waits to retry, its status gives the reason as text for a developer", () => {
  const driver = new Driver();
  expect(driver.connection.waiting).toBeUndefined();
  driver.close(1006);
  expect(driver.connection.waiting).toMatchObject({ why: "the connection was lost (close code 1006)", until: driver.connection.dueAt });
  const failing = (fail: () => void): string | undefined => {
    driver.untilDue();
    driver.tick();
    driver.receive({ kind: "token", token: "t" });
    fail();
    return driver.connection.waiting?.why;
  };
  expect(failing(() => driver.receive({ kind: "socket-closed", code: 1006, why: "connect ECONNREFUSED 127.0.0.1:1" }))).toBe(
    "cannot reach the server: connect ECONNREFUSED 127.0.0.1:1. Check that the URL is correct and that a gateway is running there.",
  );
  expect(failing(() => driver.receive({ kind: "socket-closed", code: 1006 }))).toBe(
    "cannot reach the server: the browser gives the reason only in its console. Check that the URL is correct and that a gateway is running there.",
  );
  expect(
    failing(() => {
      driver.receive({ kind: "socket-opened" });
      driver.receive({ kind: "socket-closed", code: CLOSE.tenantFull.code, why: CLOSE_MEANINGS.tenantFull });
    }),
  ).toBe("the tenant or the user has as many connections as allowed (close code 4008)");
  expect(
    failing(() => {
      driver.receive({ kind: "socket-opened" });
      driver.receive({ kind: "frame", frame: { type: "error", code: CLOSE.banned.code, message: "the user is banned" } });
      driver.receive({ kind: "socket-closed", code: CLOSE.banned.code });
    }),
  ).toBe("the user is banned (close code 4009)");
  expect(
    failing(() => {
      driver.untilDue();
      driver.tick();
    }),
  ).toBe(`the server did not answer within ${OPTIONS.openMsMax} ms`);
  driver.untilDue();
  driver.tick();
  driver.receive({ kind: "token-failed", how: "failed: backend 500", cause: "no" });
  expect(driver.connection.waiting?.why).toBe("the application's token function failed: backend 500");
});

test.each([
  ["is long", "t".repeat(33_000), /which may be too long: use a shorter one.* \(close code 1006\)$/],
  ["is short", "t".repeat(2_000), /^the connection was lost \(close code 1006\)$/],
])("[CON27] a connection that breaks directly after a token that %s was sent gives that as the reason", (_, token, why) => {
  const driver = new Driver();
  driver.receive({ kind: "connect" });
  driver.receive({ kind: "token", token });
  driver.receive({ kind: "socket-opened" });
  driver.receive({ kind: "socket-closed", code: 1006 });
  expect(driver.connection.waiting?.why).toMatch(why);
});

test("[CON2] a connection that breaks immediately after WELCOME does not reset the backoff", () => {
  const driver = new Driver();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 4; attempt++) {
    driver.open();
    driver.receive({ kind: "socket-closed", code: CLOSE.rateLimited.code });
    waits.push(driver.untilDue());
    driver.tick();
  }
  expect(waits).toEqual([200, 3_000, 3_500, 4_500]);
});

test.each(Object.entries(CLOSE))("[CON3] after the close code of %s the client does what the code requires", (_, { code, reconnect }) => {
  const driver = new Driver();
  const effects = driver.close(code);
  if (reconnect === "never") {
    expect(effects.at(-1)).toContain(`(close code ${code})`);
    expect([driver.connection.status, driver.connection.dueAt]).toEqual(["stopped", undefined]);
  } else expect([driver.connection.status, driver.untilDue()]).toEqual(["waiting", 200]);
});

test("[CON4] every attempt calls the token function; an expired fixed token ends the connection", () => {
  const driver = new Driver();
  driver.close(CLOSE.tokenExpired.code);
  driver.untilDue();
  expect(driver.tick()).toEqual(["ask-token"]);
  const fixed = new Driver({ tokenIsFixed: true });
  expect(fixed.close(CLOSE.tokenExpired.code).at(-1)).toMatch(/refused: the token has expired. Pass/);
  expect(fixed.connection.status).toBe("stopped");
});

test("[CON5] a token function that fails or does not answer is reported and called again", () => {
  const driver = new Driver();
  driver.receive({ kind: "connect" });
  expect(driver.receive({ kind: "token-failed", how: "failed: no network", cause: new Error("no network") })).toEqual([
    "problem: token-failed",
  ]);
  driver.untilDue();
  driver.tick();
  expect(driver.untilDue()).toBe(30_000);
  expect(driver.tick()).toEqual(["problem: token-failed"]);
  expect(driver.connection.waiting?.why).toBe("the application's token function took longer than 30 s");
  expect(driver.receive({ kind: "token", token: "late" })).toEqual([]);
});

test("[CON23] a connection that may be dead is sent a PING at once, and closed when nothing arrives", () => {
  const driver = new Driver();
  driver.open();
  driver.now = (driver.now + 1_000) as Millis;
  expect(driver.receive({ kind: "network", change: "doubtful" })).toEqual(["send ping"]);
  expect(driver.receive({ kind: "network", change: "doubtful" }), "asked once").toEqual([]);
  expect([driver.untilDue(), driver.tick()]).toEqual([5_000, ["close-socket", "connection-lost"]]);
  expect(driver.connection.waiting?.why).toBe("the server does not answer: the network may be interrupted");

  driver.untilDue();
  driver.tick();
  driver.open();
  driver.receive({ kind: "network", change: "back" });
  driver.now = (driver.now + 4_000) as Millis;
  driver.receive({ kind: "frame", frame: { type: "renewed", tokenExpiresInMs: 3_600_000 } });
  expect(driver.untilDue(), "a frame arrived, and the answer may follow it").toBe(5_000);
  driver.receive({ kind: "frame", frame: { type: "pong", nonce: 1 } });
  expect([driver.untilDue() > 5_000, driver.connection.status]).toEqual([true, "connected"]);
});

test("[CON23] after sleep the device checks its connection before it does anything else", () => {
  const driver = new Driver();
  driver.open();
  driver.now = (driver.now + 50_000) as Millis;
  expect(driver.tick()).toEqual(["send ping"]);
  expect([driver.untilDue(), driver.tick()]).toEqual([5_000, ["close-socket", "connection-lost"]]);
});

test("[CON23] a check whose time ended while the page was asleep is repeated, because its answer may not be read yet", () => {
  const driver = new Driver();
  driver.open();
  driver.receive({ kind: "network", change: "doubtful" });
  driver.now = (driver.now + 10_000) as Millis;
  expect(driver.tick()).toEqual(["send ping"]);
  driver.receive({ kind: "frame", frame: { type: "pong", nonce: 1 } });
  driver.receive({ kind: "frame", frame: { type: "pong", nonce: 2 } });
  expect([driver.untilDue(), driver.tick()]).toEqual([30_000, ["send ping"]]);
});

test("[CON28] a sent frame without any received frame for some time causes a check, and a silent network ends the connection", () => {
  const driver = new Driver();
  driver.open();
  driver.sends(50);
  driver.now = (driver.now + 4_000) as Millis;
  driver.sends(50);
  expect([driver.untilDue(), driver.tick()], "since the first frame").toEqual([6_000, ["send ping"]]);
  const waitMs = driver.untilDue();
  expect([Math.floor(waitMs / 1_000), driver.tick()]).toEqual([5, ["close-socket", "connection-lost"]]);
});

test("[CON28] a received frame, for example the PONG of a gateway whose log is away, keeps the connection", () => {
  const driver = new Driver();
  driver.open();
  for (let edit = 1; edit <= 5; edit++) {
    driver.sends(50);
    expect([driver.untilDue(), driver.tick()]).toEqual([10_000, ["send ping"]]);
    driver.sends(2);
    driver.receive({ kind: "frame", frame: { type: "pong", nonce: edit } });
  }
  expect([driver.untilDue(), driver.connection.status], "nothing is sent").toEqual([30_000, "connected"]);
});

test("[CON28] clients of a gateway that pauses begin their checks at different times", () => {
  const waits = [0, 0.5, 0.999].map((unit) => {
    const driver = new Driver({}, unit);
    driver.open();
    driver.sends(50);
    return driver.untilDue();
  });
  expect(waits.map(Math.round)).toEqual([8_000, 10_000, 11_996]);
});

test("[CON30] after a connection that seemed dead, nothing counts as unanswered until the first PONG, which is asked for early", () => {
  const driver = new Driver();
  const typeUntilDue = (): [number, string[]] => {
    driver.sends(50);
    return [driver.untilDue(), driver.tick()];
  };
  driver.open();
  expect(typeUntilDue()).toEqual([10_000, ["send ping"]]);
  expect(typeUntilDue()[1]).toEqual(["close-socket", "connection-lost"]);
  driver.untilDue();
  driver.tick();
  driver.receive({ kind: "token", token: "t" });
  driver.receive({ kind: "socket-closed", code: 1006 });
  driver.untilDue();
  driver.tick();
  driver.open();
  expect(typeUntilDue()).toEqual([10_000, ["send ping"]]);
  expect(typeUntilDue()).toEqual([30_000, ["send ping"]]);
  driver.receive({ kind: "frame", frame: { type: "pong", nonce: 1 } });
  expect(typeUntilDue(), "the rule applies again").toEqual([10_000, ["send ping"]]);
  driver.receive({ kind: "frame", frame: { type: "pong", nonce: 3 } });
  driver.close(1006);
  driver.untilDue();
  driver.tick();
  driver.open();
  expect([...typeUntilDue(), driver.untilDue() < 6_000], "the last connection worked").toEqual([10_000, ["send ping"], true]);
});

test("[CON29] a slow uplink has time to carry what was sent before a check, at most one edit of the largest size", () => {
  const driver = new Driver();
  driver.open();
  const checkMs = (): number => {
    expect(driver.receive({ kind: "network", change: "doubtful" })).toEqual(["send ping"]);
    return driver.connection.dueAt! - driver.now;
  };
  const answer = (nonce: number): void => void driver.receive({ kind: "frame", frame: { type: "pong", nonce } });
  driver.sends(60_000);
  expect(checkMs()).toBe(15_000);
  driver.sends(30_000);
  answer(1);
  expect(checkMs(), "what the first PONG did not confirm").toBe(10_000);
  answer(2);
  expect(checkMs()).toBe(5_000);
  answer(3);
  driver.sends(10_000_000);
  expect(checkMs()).toBe(25_000);
});

test("[CON29] what is sent before a PING that is not answered yet stays on its way when another PING follows", () => {
  const driver = new Driver();
  driver.open();
  driver.sends(60_000);
  driver.receive({ kind: "ask-arrival" });
  driver.sends(60_000);
  driver.receive({ kind: "ask-arrival" });
  driver.receive({ kind: "frame", frame: { type: "pong", nonce: 1 } });
  driver.receive({ kind: "network", change: "doubtful" });
  for (const nonce of [2, 2]) driver.receive({ kind: "frame", frame: { type: "pong", nonce } });
  expect(driver.untilDue(), "only the first 60,000 bytes have arrived").toBe(15_000);
});

test("[CON29] the limit of silence grows by the same time", () => {
  const driver = new Driver({ unansweredMsMax: 1_000_000 });
  driver.open();
  driver.sends(120_000);
  let passed = driver.untilDue();
  while (!driver.tick().includes("close-socket")) passed += driver.untilDue();
  expect(passed).toBe(75_000 + 20_000);
});

test("[CON26] in a hidden tab, whose timers run once a minute, the token is renewed and the gateway left", () => {
  const driver = new Driver();
  driver.open();
  driver.receive({ kind: "frame", frame: { type: "going-away", reconnectAfterMs: 50_000 } });
  const effects: string[] = [];
  for (let minute = 1, pings = 0; minute <= 50; minute++) {
    driver.now = (driver.now + 60_000) as Millis;
    const ticked = driver.tick();
    effects.push(...ticked.filter((effect) => effect !== "send ping"));
    driver.receive({ kind: "frame", frame: { type: "pong", nonce: (pings += ticked.includes("send ping") ? 1 : 0) } });
  }
  expect([effects, driver.connection.status]).toEqual([["move", "ask-token"], "connected"]);
});

test("[CON24] when the network returns the client retries at once with a small random delay, unless the server asked it to wait", () => {
  const driver = new Driver();
  driver.close(1006);
  for (let attempt = 0; attempt < 6; attempt++) {
    driver.untilDue();
    driver.tick();
    driver.receive({ kind: "token", token: "t" });
    driver.receive({ kind: "socket-closed", code: 1006 });
  }
  expect(driver.receive({ kind: "network", change: "doubtful" })).toEqual([]);
  expect(driver.connection.dueAt! - driver.now).toBe(17_500);
  driver.receive({ kind: "network", change: "back" });
  expect([driver.untilDue(), driver.tick()]).toEqual([200, ["ask-token"]]);

  driver.receive({ kind: "token", token: "t" });
  driver.receive({ kind: "socket-closed", code: 1006, retryAfterMs: 60_000 });
  driver.receive({ kind: "network", change: "back" });
  expect(driver.untilDue()).toBeGreaterThanOrEqual(60_000);
});

test("[CON6] the client sends PINGs at the server's interval and treats a silent connection as broken", () => {
  const driver = new Driver();
  driver.open();
  expect([driver.untilDue(), driver.tick()]).toEqual([30_000, ["send ping"]]);
  driver.receive({ kind: "frame", frame: { type: "pong", nonce: 1 } });
  expect([driver.untilDue(), driver.tick()]).toEqual([30_000, ["send ping"]]);
  expect([driver.untilDue(), driver.tick()]).toEqual([30_000, ["send ping"]]);
  expect([driver.untilDue(), driver.tick()], "75 s after the pong").toEqual([15_000, ["close-socket", "connection-lost"]]);
});

test("[CON6] the connection was last known to work when the last frame arrived, not when its end was noticed", () => {
  const driver = new Driver();
  driver.open();
  const lastReceivedAt = driver.now;
  driver.now = (driver.now + 8 * 3_600_000) as Millis; // The night of a laptop.
  expect(driver.connection.receiveInput({ kind: "tick" }, driver.now)).toContainEqual({ kind: "connection-lost", lastReceivedAt });
});

test("[CON7] the client abandons an attempt that the server does not answer, and tries again", () => {
  const driver = new Driver();
  driver.receive({ kind: "connect" });
  driver.receive({ kind: "token", token: "t" });
  expect([driver.untilDue(), driver.tick()]).toEqual([10_000, ["close-socket"]]);
  driver.untilDue();
  driver.tick();
  driver.receive({ kind: "token", token: "t" });
  driver.receive({ kind: "socket-opened" });
  expect([driver.untilDue(), driver.tick()]).toEqual([10_000, ["close-socket"]]);
});

test("[CON8] disconnect ends any attempt or wait, and connect starts again at once", () => {
  const driver = new Driver();
  driver.open();
  expect(driver.receive({ kind: "disconnect" })).toEqual(["close-socket", "connection-lost"]);
  expect([driver.connection.status, driver.connection.dueAt]).toEqual(["disconnected", undefined]);
  driver.open();
  driver.receive({ kind: "socket-closed", code: 1006 });
  expect(driver.receive({ kind: "connect" }), "while waiting").toEqual(["ask-token"]);
  expect(driver.receive({ kind: "connect" }), "while trying").toEqual([]);
  driver.receive({ kind: "disconnect" });
  expect(driver.receive({ kind: "token", token: "late" })).toEqual([]);
  driver.close(CLOSE.unauthorized.code);
  expect(driver.receive({ kind: "connect" }), "after a refusal").toEqual(["ask-token"]);
});

test("[CON9] bytes that are no frame end the connection permanently, because a retry would end the same way", () => {
  const driver = new Driver();
  driver.open();
  expect(driver.receive({ kind: "frame", frame: undefined }).at(-1)).toMatch(/may speak another protocol/);
  expect(driver.connection.status).toBe("stopped");
});

test("[CON9] the client skips frames of a later protocol version, and they count as activity", () => {
  const driver = new Driver();
  driver.open();
  driver.now = (driver.now + 74_000) as Millis;
  expect(driver.receive({ kind: "frame", frame: { type: "unknown", number: 0xee } })).toEqual([]);
  driver.now = (driver.now + 74_000) as Millis;
  expect(driver.tick()).toEqual(["send ping"]);
});

test("[CON10] a rejected connection reports the server's reason", () => {
  const driver = new Driver();
  driver.open();
  driver.receive({ kind: "frame", frame: { type: "error", code: 4101, message: "the token was refused: wrong signature" } });
  expect(driver.receive({ kind: "socket-closed", code: 4101 }).at(-1)).toBe(
    "refused: the token was refused: wrong signature (close code 4101)",
  );
});

test("[CON20] an ERROR frame without a close is not the reason of a later close", () => {
  const driver = new Driver();
  driver.open();
  driver.receive({ kind: "frame", frame: { type: "error", code: 4104, message: "show less" } });
  driver.receive({ kind: "frame", frame: { type: "pong", nonce: 1 } });
  driver.receive({ kind: "socket-closed", code: 1006 });
  expect(driver.connection.waiting?.why).toBe("the connection was lost (close code 1006)");
});

test("[CON21] an ERROR about presence limits is reported to the application; an ERROR before a close is only the reason for the close", () => {
  const driver = new Driver();
  driver.open();
  const error: ConnectionInput = { kind: "frame", frame: { type: "error", code: CLOSE.frameTooLarge.code, message: "too large" } };
  expect(driver.receive(error)).toEqual([]);
  expect(driver.receive({ kind: "frame", frame: { type: "pong", nonce: 1 } })).toEqual(["problem: presence-too-large"]);
  expect(driver.receive({ kind: "frame", frame: { type: "pong", nonce: 2 } })).toEqual([]);
  driver.receive(error);
  expect(driver.receive({ kind: "socket-closed", code: CLOSE.frameTooLarge.code })).toEqual([
    "close-socket",
    "connection-lost",
    "refused: too large (close code 4104)",
  ]);
});

test("[CON11] after GOING_AWAY the client opens another connection at its assigned time and keeps the old one", () => {
  const driver = new Driver();
  driver.open();
  expect(driver.receive({ kind: "frame", frame: { type: "going-away", reconnectAfterMs: 12_000 } })).toEqual([]);
  expect([driver.untilDue(), driver.tick()]).toEqual([12_000, ["move"]]);
  expect([driver.connection.status, driver.untilDue(), driver.tick()]).toEqual(["connected", 18_000, ["send ping"]]);
});

test("[CON15] a banned client returns when the ban ends, however long it is, and only slightly later", () => {
  const driver = new Driver();
  driver.open();
  driver.receive({ kind: "frame", frame: { type: "retry-later", retryAfterMs: 3_600_000 } });
  driver.receive({ kind: "socket-closed", code: CLOSE.banned.code });
  expect([driver.connection.status, driver.untilDue()]).toEqual(["waiting", 3_602_500]);
});

test("[CON14] the status shows that a gateway lost NATS; the client leaves at its assigned time, or stays if NATS returns", () => {
  const driver = new Driver();
  driver.open();
  const announce = (backbone: "lost" | "found", reconnectAfterMs = 0): string[] =>
    driver.receive({ kind: "frame", frame: { type: "degraded", backbone, reconnectAfterMs } });
  expect([announce("lost", 9_000), driver.connection.status, driver.connection.isOpen]).toEqual([[], "degraded", true]);
  expect([driver.untilDue(), driver.tick()]).toEqual([9_000, ["move"]]);
  expect([announce("found"), driver.connection.status]).toEqual([["stay"], "connected"]);

  announce("lost", 9_000);
  driver.now = (driver.now + 5_000) as Millis;
  announce("lost", 20_000); // Repeated: the time of the first announcement counts.
  expect(driver.untilDue()).toBe(4_000);
  expect(announce("found")).toEqual(["stay"]);
  expect(driver.untilDue()).toBeGreaterThan(4_000); // The next PING.
});

test.each([
  ["before", ["going-away", "lost", "found"]],
  ["while", ["lost", "going-away", "found"]],
] as const)(
  "[CON14] the client leaves a gateway that announced its shutdown %s it lost its backbone, even when the backbone returns",
  (_, announced) => {
    const driver = new Driver();
    driver.open();
    for (const what of announced) {
      const frame: ServerFrame =
        what === "going-away"
          ? { type: "going-away", reconnectAfterMs: 12_000 }
          : { type: "degraded", backbone: what, reconnectAfterMs: 15_000 };
      expect(driver.receive({ kind: "frame", frame })).toEqual([]);
    }
    expect(driver.connection.status).toBe("connected");
    expect([driver.untilDue(), driver.tick()]).toEqual([12_000, ["move"]]);
    const found: ServerFrame = { type: "degraded", backbone: "found", reconnectAfterMs: 0 };
    driver.receive({ kind: "frame", frame: { ...found, backbone: "lost" } });
    expect(driver.receive({ kind: "frame", frame: found })).toEqual([]); // The recovery does not cancel the move either.
  },
);

test("[CON12] the client calls the token function after 80 % of the token's life, and the connection stays open", () => {
  const driver = new Driver();
  driver.open();
  const renewFrame = { kind: "send", frame: { type: "renew", token: "new" } };
  const openedAt = driver.now;
  expect(msUntilTokenIsAsked(driver)).toBe(2_880_000);
  expect(driver.connection.receiveInput({ kind: "token", token: "new" }, driver.now)).toEqual([renewFrame]);
  expect(msUntilTokenIsAsked(driver), "no answer").toBe(30_000);
  expect(driver.receive({ kind: "token-failed", how: "failed: undefined", cause: undefined })).toEqual(["problem: token-failed"]);
  expect(msUntilTokenIsAsked(driver), "no token").toBe(3_000);
  driver.receive({ kind: "token", token: "new" });
  driver.receive({ kind: "frame", frame: { type: "renewed", tokenExpiresInMs: 1_000 } });
  expect(msUntilTokenIsAsked(driver), "never more often").toBe(3_000);
  expect([driver.connection.status, driver.now - openedAt]).toEqual(["connected", 2_916_000]);
  expect(driver.receive({ kind: "socket-closed", code: CLOSE.tokenExpired.code })).toEqual(["close-socket", "connection-lost"]);
});

test("[CON17] a token function that fails on an open connection is called after growing waits until it returns a token", () => {
  const driver = new Driver();
  driver.open();
  msUntilTokenIsAsked(driver);
  const waits = Array.from({ length: 8 }, () => {
    driver.receive({ kind: "token-failed", how: "failed: undefined", cause: undefined });
    return msUntilTokenIsAsked(driver);
  });
  expect(waits).toEqual([3_000, 3_500, 4_500, 6_500, 10_500, 17_500, 17_500, 17_500]);
  driver.receive({ kind: "token", token: "new" });
  driver.receive({ kind: "frame", frame: { type: "renewed", tokenExpiresInMs: 3_600_000 } });
  msUntilTokenIsAsked(driver);
  driver.receive({ kind: "token-failed", how: "failed: undefined", cause: undefined });
  expect(msUntilTokenIsAsked(driver)).toBe(3_000);
});

test("[CON18] a fixed token is not renewed", () => {
  const driver = new Driver({ tokenIsFixed: true });
  driver.open();
  expect([driver.untilDue(), driver.tick()]).toEqual([30_000, ["send ping"]]);
});

test("[CON13] the client waits as long as the server asks plus a random part; a longer backoff takes precedence", () => {
  const driver = new Driver();
  const turnedAway = (retryAfterMs: number): number => {
    driver.receive({ kind: "connect" });
    driver.receive({ kind: "token", token: "t" });
    driver.receive({ kind: "socket-opened" });
    driver.receive({ kind: "frame", frame: { type: "retry-later", retryAfterMs } });
    driver.receive({ kind: "socket-closed", code: CLOSE.overloaded.code });
    return driver.untilDue();
  };
  expect([turnedAway(5_000), turnedAway(5_000), turnedAway(1_000), turnedAway(1e12)]).toEqual([7_500, 7_500, 3_500, 450_000]);
  driver.tick();
  driver.receive({ kind: "token", token: "t" });
  driver.receive({ kind: "socket-closed", code: 1006 });
  expect(driver.untilDue(), "the hint counts once").toBeLessThan(20_000);
});

test("[CON22] a rejected upgrade is never retried quickly, and not before the server's Retry-After where the platform reveals it", () => {
  const driver = new Driver();
  const refused = (retryAfterMs?: number): number => {
    driver.receive({ kind: "connect" });
    driver.receive({ kind: "token", token: "t" });
    driver.receive({ kind: "socket-closed", code: 1006, retryAfterMs });
    return driver.untilDue();
  };
  expect([refused(), refused(), refused(5_000), refused()]).toEqual([3_000, 3_500, 7_500, 6_500]);
});

/** Everything else works meanwhile. */
function msUntilTokenIsAsked(driver: Driver): number {
  const from = driver.now;
  for (;;) {
    driver.receive({ kind: "frame", frame: { type: "pong", nonce: 1 } });
    driver.untilDue();
    if (driver.tick().includes("ask-token")) return driver.now - from;
  }
}
