/** TipTap in Vue on a shared document. `?user=ada` sets the user. */

import { createApp } from "vue";

import Notes from "./Notes.vue";

createApp(Notes).mount("#app");
