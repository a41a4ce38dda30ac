/** Shows the current facts: the remark in the bar and the values in the panel. */

import type { CoroomProvider } from "@coroom/client";

import { modeRemark } from "../people.ts";
import { type PageFacts, statusRemark, type StatusRemark, saveRemark } from "../status.ts";
import { element } from "./element.ts";

/** "Saved" appears only after a pause in typing, so that it does not flicker. All other remarks appear immediately. */
const SAVED_AFTER_MS = 300;

export function statusView(): (facts: PageFacts) => void {
  const [showRemark, announceRemark] = [remarkView("save"), remarkAnnouncer("save-announcement")];
  const showSave = (remark: StatusRemark): void => {
    showRemark(remark);
    announceRemark(remark);
  };
  const showStatus = remarkView("status");
  const figures = {
    seq: element("seq", HTMLElement),
    unsaved: element("unsaved", HTMLElement),
    lastSave: element("last-save", HTMLElement),
  };
  let showingSaved: ReturnType<typeof setTimeout> | undefined;
  return (facts) => {
    const save = saveRemark(facts);
    if (save.tone === "good") showingSaved ??= setTimeout(() => showSave(save), SAVED_AFTER_MS);
    else {
      clearTimeout(showingSaved);
      showingSaved = undefined;
      showSave(save);
    }
    showStatus(statusRemark(facts));
    figures.seq.textContent = facts.seq.toLocaleString();
    figures.unsaved.textContent = facts.unsavedEdits.toLocaleString();
    figures.lastSave.textContent = facts.lastSaveMs === undefined ? "–" : duration(facts.lastSaveMs);
  };
}

function remarkView(id: string): (remark: StatusRemark) => void {
  const box = element(id, HTMLElement);
  const words = box.querySelector("span")!;
  return ({ tone, text }) => {
    box.dataset["tone"] = tone;
    words.textContent = text;
  };
}

/** Announces problems and their end to screen readers, but not each saved edit. */
function remarkAnnouncer(id: string): (remark: StatusRemark) => void {
  const box = element(id, HTMLElement);
  let announced: StatusRemark["tone"] | undefined;
  return ({ tone, text }) => {
    if (tone === "busy" || tone === announced) return;
    announced = tone;
    box.textContent = text;
  };
}

function duration(ms: number): string {
  return ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Shows the presence mode of the room and the rate of presence updates beside the bots, who change them. */
export function presenceView(provider: CoroomProvider): void {
  const mode = element("mode", HTMLElement);
  const show = (): void => {
    mode.textContent = modeRemark(provider.mode);
    mode.dataset["mode"] = provider.mode?.mode ?? "";
  };
  provider.on("mode", show);
  show();
}
