export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

const ADDRESS = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s]+)):([0-9]{1,5})$/i;

/** Parses `host:port` or `[IPv6 address]:port`; undefined if the text is neither. Port 0 takes a free one. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const [, v6, host = v6, digits = ''] = ADDRESS.exec(text) ?? [];
  const port = Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

const LOOPBACK = /^(?:localhost|127(?:\.[0-9]{1,3}){3}|::1)$/i;

/** Whether only processes of the same host or pod can reach an address. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/**
 * Whether a request's Host header names this listener. A page of another site can make a browser send requests here by
 * resolving its own name to this address (DNS rebinding); the header then contains that name. Any port is accepted,
 * because the user of `kubectl port-forward` chooses it.
 */
export function isOwnHost(header: string | undefined, listensOn: string): boolean {
  const [, v6, host = v6] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s]+))(?::[0-9]{1,5})?$/i.exec(header ?? '') ?? [];
  return host !== undefined && (isLoopback(host) || host.toLowerCase() === listensOn.toLowerCase());
}
