/** Chaos on containers connects with the NATS user that `deploy/compose.yaml` gives to operators. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { natsAddress } from "../../shared/io/nats-address.ts";
import { operatorUrl } from "./containers.ts";

test("[CHC1] chaos on containers connects to every nats-server as the operator of compose", () => {
  const { servers, options } = natsAddress({ natsUrl: operatorUrl(["10.0.0.1", "10.0.0.2"], "a/b@c:d") });
  expect(servers).toEqual(["nats://10.0.0.1:4222", "nats://10.0.0.2:4222"]);
  expect(options).toMatchObject({ user: "operator", pass: "a/b@c:d" });
  expect(readFileSync("deploy/compose.yaml", "utf8")).toContain("NATS_OPERATOR_PASSWORD:");
});
