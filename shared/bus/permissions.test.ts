import { expect, test } from "vitest";

import { NATS_ROLES, natsPermissions } from "./permissions.ts";

const ENVIRONMENT = "staging";
const of = (role: (typeof NATS_ROLES)[number]) => natsPermissions(role, ENVIRONMENT, 2);

test("[PRM1] a gateway has no permission with which it could write to the log, or make nats-server write to it", () => {
  const { publish } = of("gateway");
  expect(publish.filter((subject) => /\.(?:CREATE|UPDATE|DELETE|PURGE)\b|CONSUMER|DIRECT|\$O\.|\.log\./.test(subject))).toEqual([]);
  expect(publish.filter((subject) => subject.startsWith("$KV."))).toEqual(["$KV.staging_plan.>"]);
});

test("[PRM2] only room servers, document services and the operator may append to the log or purge it", () => {
  const may = (subject: string) => NATS_ROLES.filter((role) => of(role).publish.includes(subject));
  expect(may("staging.log.*.*.*")).toEqual(["room-server", "document-service"]);
  for (const partition of [0, 1])
    expect(may(`$JS.API.STREAM.PURGE.staging_log_${partition}`)).toEqual(["room-server", "document-service", "operator"]);
});

test.each(NATS_ROLES)("[PRM3] every subject of %s names its environment, or shows settings only", (role) => {
  const { publish, subscribe } = of(role);
  const general = publish.filter((subject) => !/(?:^|_|\$KV\.|\$O\.|\.)staging[_.]/.test(subject));
  const ofOperator = ["CONSUMER.LEADER.STEPDOWN.*.*", "INFO", "STREAM.INFO.*", "STREAM.LEADER.STEPDOWN.*", "STREAM.LIST", "STREAM.NAMES"];
  expect(general).toEqual((role === "operator" ? ofOperator : ["INFO", "STREAM.NAMES"]).map((name) => `$JS.API.${name}`));
  expect(subscribe.filter((subject) => !subject.startsWith("staging."))).toEqual(role === "operator" ? ["_INBOX.>"] : []);
});

test("[PRM4] only the operator may read the answers to another role", () => {
  for (const role of NATS_ROLES)
    if (role !== "operator") expect(of(role).subscribe.filter((subject) => subject.includes("inbox"))).toEqual([`staging.inbox.${role}.>`]);
});
