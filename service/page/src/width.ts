/** The width that an element has now, in CSS pixels: charts and the map are drawn to it. */
import { useLayoutEffect, useState } from "preact/hooks";

export function useWidth(frame: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  // Before the first paint: what is drawn to it would else come a frame later.
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const measure = (): void => setWidth(Math.floor(element.clientWidth));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  return width;
}
