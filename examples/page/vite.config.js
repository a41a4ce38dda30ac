/** The page asks its own server for a token, as it would ask your backend. */
export default { server: { proxy: { "/token": process.env.TOKEN_URL ?? "http://127.0.0.1:3000" } } };
