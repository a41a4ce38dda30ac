/** The default theme with the fonts of the visitor's system, so that the site loads no fonts. */
export { default } from "vitepress/theme-without-fonts";

import "./contrast.css"; // After the theme, whose colours it replaces.
