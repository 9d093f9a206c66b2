/** A pod as the kubelet's runtime names it to CNI plugins. */
export interface CniPod {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly uid: string | undefined;
}

/**
 * Reads CNI_ARGS: `KEY=value` pairs with semicolons between them. What is no pair is ignored. Of two with one key the first
 * counts, which is the runtime's own: what a meta-plugin adds comes after it.
 */
export function parseCniArgs(text: string | undefined): ReadonlyMap<string, string> {
  const pairs = (text ?? '').split(';').flatMap((pair): [string, string][] => {
    const at = pair.indexOf('=');
    return at > 0 ? [[pair.slice(0, at), pair.slice(at + 1)]] : [];
  });
  return new Map(pairs.reverse());
}

/** The pod that a call is for; a runtime that is no kubelet's names none. */
export function podOf(args: ReadonlyMap<string, string>): CniPod {
  const value = (key: string) => args.get(key) || undefined;
  return { namespace: value('K8S_POD_NAMESPACE'), name: value('K8S_POD_NAME'), uid: value('K8S_POD_UID') };
}
