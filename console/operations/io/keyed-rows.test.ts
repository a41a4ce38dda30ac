// @vitest-environment happy-dom
/** What polling replaces in the page. */

import { expect, test } from "vitest";

import { tagged } from "../../io/element.ts";
import { setNodes } from "./keyed-rows.ts";

test("[KROW1] an unchanged node stays, so that its selected text stays selected, and a changed node is replaced", () => {
  const place = tagged("ul", "");
  const show = (...texts: string[]): void =>
    setNodes(
      place,
      texts.map((text) => tagged("li", "", text)),
    );
  show("2 gateways", "4 connections", "slow");
  const [gateways, connections] = place.children;
  show("2 gateways", "5 connections");
  expect([...place.children].map(({ textContent }) => textContent)).toEqual(["2 gateways", "5 connections"]);
  expect([place.children[0] === gateways, place.children[1] === connections]).toEqual([true, false]);
});
