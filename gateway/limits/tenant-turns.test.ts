import fc from "fast-check";
import { expect, test } from "vitest";

import type { TenantId } from "../../shared/ids.ts";
import { TenantTurns } from "./tenant-turns.ts";

const [A, B, C] = ["a", "b", "c"] as TenantId[] as [TenantId, TenantId, TenantId];

test("[STN1] a tenant has three quarters of the connections, and the rest is free for others", () => {
  const turns = new TenantTurns(4);
  const started: string[] = [];
  for (let call = 0; call < 10; call++) turns.take(A, () => started.push("a"));
  for (let call = 0; call < 3; call++) turns.take(B, () => started.push("b"));
  expect(started).toEqual(["a", "a", "a", "b"]);
});

test("[STN6] two tenants together leave an eighth of the connections for tenants that have none", () => {
  const turns = new TenantTurns(16);
  const started: TenantId[] = [];
  for (const tenant of [A, B]) for (let call = 0; call < 20; call++) turns.take(tenant, () => started.push(tenant));
  expect(started.length).toBe(14);
  turns.take(C, () => started.push(C));
  turns.take(C, () => started.push(C));
  expect(started.slice(14)).toEqual([C]);
  turns.release(A);
  expect(started.slice(15)).toEqual([]);
  turns.release(A);
  expect(started.slice(15)).toEqual([C]);
});

test("[STN2] the next connection is for the tenant with the fewest, and calls of a tenant keep their order", () => {
  const turns = new TenantTurns(4);
  const started: string[] = [];
  for (const call of [1, 2, 3, 4, 5]) turns.take(A, () => started.push(`a${call}`));
  turns.take(B, () => started.push("b1"));
  const gone = () => started.push("gone");
  turns.take(C, gone);
  turns.take(C, () => started.push("c1"));
  turns.leave(C, gone);
  turns.release(A);
  turns.release(A);
  expect(started).toEqual(["a1", "a2", "a3", "b1", "c1", "a4"]);
});

test("[STN4] of tenants with as many connections each takes its turn, also with more tenants than connections", () => {
  const turns = new TenantTurns(2);
  const started: TenantId[] = [];
  for (let call = 0; call < 3; call++) for (const tenant of [A, B, C]) turns.take(tenant, () => started.push(tenant));
  for (let ended = 0; ended < 7; ended++) turns.release(started[ended]!);
  expect(started).toEqual([A, B, A, B, C, A, B, C, C]);
});

test("[STN5] any number of waiting calls may end while they start", () => {
  const turns = new TenantTurns(1);
  turns.take(A, () => {});
  let started = 0;
  const failing = () => {
    started += 1;
    turns.release(A);
  };
  for (let call = 0; call < 50_000; call++) turns.take(A, () => failing());
  turns.release(A);
  expect([started, turns.isIdle]).toEqual([50_000, true]);
});

test("[STN3] every call that stays is started once, within the limits, and nothing is known of tenants without calls", () => {
  const step = fc.record({ tenant: fc.constantFrom(A, B, C), act: fc.constantFrom("take", "take", "leave", "release") });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), fc.integer({ min: 1, max: 6 }), (steps, max) => {
      const turns = new TenantTurns(max);
      const running = new Map([A, B, C].map((tenant) => [tenant, 0]));
      const waiting: { readonly tenant: TenantId; readonly start: () => void }[] = [];
      const release = (tenant: TenantId): void => {
        if (running.get(tenant) === 0) return;
        running.set(tenant, running.get(tenant)! - 1);
        turns.release(tenant);
      };
      for (const { tenant, act } of steps) {
        if (act === "release") release(tenant);
        if (act === "leave") {
          const index = waiting.findIndex((call) => call.tenant === tenant);
          for (const { start } of index < 0 ? [] : waiting.splice(index, 1)) turns.leave(tenant, start);
        }
        if (act === "take") {
          const call = {
            tenant,
            start: () => {
              waiting.splice(waiting.indexOf(call), 1);
              running.set(tenant, running.get(tenant)! + 1);
            },
          };
          waiting.push(call);
          turns.take(tenant, call.start);
        }
        const counts = [...running.values()];
        expect(counts.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(max);
        expect(Math.max(...counts)).toBeLessThanOrEqual(Math.ceil(0.75 * max));
      }
      while ([...running.values()].some((count) => count > 0)) for (const tenant of [A, B, C]) release(tenant);
      expect([waiting, turns.isIdle]).toEqual([[], true]);
    }),
  );
});
