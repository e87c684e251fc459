/** The page's build: one script, one style sheet, nothing inline, so that a strict content security policy holds. */
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    target: "es2023",
  },
  server: { proxy: { "/api": "http://127.0.0.1:8080" } },
});
