/** What judged a disk: `rule:NAME` or `model:BUNDLE`, as the service gives it. No other module takes these apart. */
const RULE = "rule:";
const MODEL = "model:";

/** The name of the rule that judged, or null where a model judged or nothing did. */
export const ruleOf = (source: string | null | undefined): string | null => (source?.startsWith(RULE) ? source.slice(RULE.length) : null);

/** The name of the bundle, or the source as it is. */
export const bundleOf = (source: string): string => (source.startsWith(MODEL) ? source.slice(MODEL.length) : source);
