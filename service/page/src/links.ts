/** Addresses of what can be looked at. */

export const deviceLink = (device: string): string => `/devices/${encodeURIComponent(device)}`;
export const osdLink = (osd: { osd: number; device: string | null }): string =>
  osd.device ? deviceLink(osd.device) : `/osds/${osd.osd}`;
export const drainLink = (id: string): string => `/drains/${encodeURIComponent(id)}`;
export const hostLink = (host: string): string => `/fleet?q=${encodeURIComponent(host)}`;
