/** Checks a page in a browser against the Web Content Accessibility Guidelines, levels A and AA, as far as axe-core can. */

import axe from "axe-core";
import type { Page } from "playwright-core";

const LEVELS_A_AND_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** `within`: selector of the part to check. `except`: rules that are not checked. */
type Scope = { readonly within?: string; readonly except?: readonly string[] };

/** Returns a text for each violation in what the page shows now: the rule, the element and what is wrong. */
export async function accessibilityViolations(page: Page, { within = "html", except = [] }: Scope = {}): Promise<string[]> {
  await page.evaluate(axe.source); // Not as a script element: the pages allow only their own scripts.
  const violations = await page.evaluate(
    async ({ selector, levels, off }) => {
      const rules = Object.fromEntries(off.map((rule) => [rule, { enabled: false }]));
      const { axe: checker } = window as unknown as { axe: typeof axe };
      // Without selectors: axe-core throws when the page removes an element of which it makes one.
      return (await checker.run(selector, { runOnly: levels, rules, resultTypes: ["violations"], selectors: false })).violations;
    },
    { selector: within, levels: LEVELS_A_AND_AA, off: [...except] },
  );
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`));
}
