/** Shows how the room carries its presence, and how large the server takes it to be. */

import type { CoroomProvider } from "@coroom/client";

import { modeRemark } from "../people.ts";
import { element } from "./element.ts";

export function roomView(provider: CoroomProvider): void {
  const mode = element("mode", HTMLElement);
  const pace = element("pace", HTMLElement);
  const show = (): void => {
    mode.textContent = modeRemark(provider.mode);
    mode.dataset["mode"] = provider.mode?.mode ?? "";
    pace.textContent = provider.mode === undefined ? "–" : `${provider.mode.presencePerSecond} a second`;
  };
  provider.on("mode", show);
  show();
}
