import vue from "@vitejs/plugin-vue";

/** The page requests a token from its own server, as it would from your backend. */
export default { plugins: [vue()], server: { proxy: { "/token": process.env.TOKEN_URL ?? "http://127.0.0.1:3000" } } };
