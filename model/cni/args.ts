/** A pod, as container runtimes pass it to CNI plugins. */
export interface CniPod {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly uid: string | undefined;
}

/**
 * Parses CNI_ARGS: `KEY=value` pairs separated by semicolons. It ignores anything else. Of two pairs with the same key
 * the first one applies: it comes from the runtime, while meta-plugins append theirs.
 */
export function parseCniArgs(text: string | undefined): ReadonlyMap<string, string> {
  const pairs = (text ?? '').split(';').flatMap((pair): [string, string][] => {
    const at = pair.indexOf('=');
    return at > 0 ? [[pair.slice(0, at), pair.slice(at + 1)]] : [];
  });
  return new Map(pairs.reverse());
}

/** The pod of a call; empty if the runtime does not serve a kubelet and names no pod. */
export function podOf(args: ReadonlyMap<string, string>): CniPod {
  const value = (key: string) => args.get(key) || undefined;
  return { namespace: value('K8S_POD_NAMESPACE'), name: value('K8S_POD_NAME'), uid: value('K8S_POD_UID') };
}
