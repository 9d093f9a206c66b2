import * as z from 'zod';
import { ParseError, quote } from '../errors.ts';

/** Read by multus: the networks to attach besides the pod network. */
export const NETWORKS_ANNOTATION = 'k8s.v1.cni.cncf.io/networks';
/** Read by multus: the network to use instead of the cluster's own pod network. */
export const DEFAULT_NETWORK_ANNOTATION = 'v1.multus-cni.io/default-network';

/** Names a NetworkAttachmentDefinition. */
export interface NetworkRef {
  readonly namespace: string;
  readonly name: string;
}

export interface Attachment extends NetworkRef {
  /** The interface's name inside the pod, if the annotation gives one. */
  readonly interface?: string;
}

/** Characters of an annotation, and attachments in it: a tenant writes it, and each is looked up and spoken of. */
const LONGEST = 64 * 1024;
export const MOST_ATTACHMENTS = 128;
/** Characters of names as the API server has them. */
const LONGEST_NAME = 253;
const LONGEST_NAMESPACE = 63;
/** Linux's IFNAMSIZ without the terminating zero. */
const LONGEST_INTERFACE = 15;
const SHORT_NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const WHAT = `annotation ${NETWORKS_ANNOTATION}`;

/** Six, eight or twenty bytes, as Go's net.ParseMAC takes them; multus refuses the whole annotation for another. */
const MAC =
  /^(?:[\da-f]{2}([:-])[\da-f]{2}(?:\1[\da-f]{2}){4}(?:(?:\1[\da-f]{2}){2}|(?:\1[\da-f]{2}){14})?|[\da-f]{4}(?:\.[\da-f]{4}){2}(?:\.[\da-f]{4}|(?:\.[\da-f]{4}){7})?)$/i;
/** Empty counts as none. */
const address = z.string().refine((text) => text === '' || MAC.test(text), 'it is not a MAC address');

const jsonForm = z.array(
  z.object({
    name: z.string().max(LONGEST_NAME),
    namespace: z.string().max(LONGEST_NAMESPACE).optional(),
    interface: z.string().optional(),
    mac: address.optional(),
    'infiniband-guid': address.optional(),
  }),
);

/**
 * Reads multus's networks annotation in either form: `net1,other/net2@eth5`, or a JSON list of objects. As multus does,
 * text with any of `[ { "` counts as JSON, and the character rule for names holds in the short form alone.
 *
 * An item without a name is kept (`net1,` ends with one): multus will look for it and fail, so it must be seen.
 * @param namespace the pod's, for items that name none
 * @throws ParseError naming the item; also for more items, or characters, than a pod can have networks Source: Network
 * Plumbing Working Group, Multi-Network De-facto Standard 1.3; multus-cni, pkg/k8sclient.
 */
export function parseAttachments(text: string, namespace: string): readonly Attachment[] {
  if (text === last.text && namespace === last.namespace) return last.found;
  const found = parse(text, namespace);
  last = { text, namespace, found };
  return found;
}

/** What was read last: an admission reads the annotation of its pod three times in a row. */
let last: { readonly text: string; readonly namespace: string; readonly found: readonly Attachment[] } = {
  text: '',
  namespace: '',
  found: [],
};

function parse(text: string, namespace: string): readonly Attachment[] {
  if (text.length > LONGEST) throw new ParseError(WHAT, text, `it has more than ${LONGEST} characters`);
  if (text.trim() === '') return [];
  if (/[[{"]/.test(text)) return parseJson(text, namespace);
  const items = text.split(',', MOST_ATTACHMENTS + 1);
  if (items.length > MOST_ATTACHMENTS) throw tooMany(text);
  return items.map((item) => parseItem(item, text, namespace));
}

/** The reference as people write it: `namespace/name`. */
export function refText(ref: NetworkRef): string {
  return `${ref.namespace}/${ref.name}`;
}

/** Reads `name` or `namespace/name`, as KubeVirt's multus networkName has it. */
export function parseRef(text: string, namespace: string): NetworkRef {
  const slash = text.indexOf('/');
  return slash < 0 ? { namespace, name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

function parseJson(text: string, namespace: string): readonly Attachment[] {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (cause) {
    throw new ParseError(
      WHAT,
      text,
      'it looks like JSON and is not; expected a list of objects, or name,namespace/name@interface',
      { cause },
    );
  }
  if (Array.isArray(data) && data.length > MOST_ATTACHMENTS) throw tooMany(text);
  const parsed = jsonForm.safeParse(data);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const where = issue?.path.join('.') ?? '';
    throw new ParseError(WHAT, text, `${where === '' ? 'it' : where}: ${issue?.message ?? 'unexpected content'}`);
  }
  return parsed.data.map((item) => {
    checkInterface(item.interface, text);
    return attachment(item.namespace || namespace, item.name, item.interface);
  });
}

function parseItem(item: string, text: string, namespace: string): Attachment {
  const trimmed = item.trim();
  const [path = '', interfaceName, ...extra] = trimmed.split('@');
  if (extra.length > 0) throw new ParseError(WHAT, text, `${quote(trimmed)} has more than one @`);
  const parts = path.split('/');
  if (parts.length > 2) throw new ParseError(WHAT, text, `${quote(trimmed)} has more than one /`);
  const [name = '', itsNamespace] = parts.reverse();
  for (const part of [name, itsNamespace, interfaceName]) {
    if (part && !SHORT_NAME.test(part)) {
      throw new ParseError(
        WHAT,
        text,
        `${quote(part)} must be lower-case letters, digits and inner hyphens (other names need the JSON form)`,
      );
    }
  }
  checkInterface(interfaceName, text);
  return attachment(itsNamespace || namespace, name, interfaceName);
}

function tooMany(text: string): ParseError {
  return new ParseError(WHAT, text, `it has more than ${MOST_ATTACHMENTS} items`);
}

function checkInterface(name: string | undefined, text: string): void {
  if (name !== undefined && name.length > LONGEST_INTERFACE) {
    throw new ParseError(WHAT, text, `interface name ${quote(name)} is longer than ${LONGEST_INTERFACE} characters`);
  }
}

function attachment(namespace: string, name: string, interfaceName: string | undefined): Attachment {
  return interfaceName ? { namespace, name, interface: interfaceName } : { namespace, name };
}
