import * as z from 'zod';
import { issueText, ParseError, quote } from '../errors.ts';
import { goJsonParser } from '../json.ts';

/** Annotation for multus: the networks to attach in addition to the pod network. */
export const NETWORKS_ANNOTATION = 'k8s.v1.cni.cncf.io/networks';
/** Annotation for multus: the network to use instead of the cluster's pod network. */
export const DEFAULT_NETWORK_ANNOTATION = 'v1.multus-cni.io/default-network';

export interface NetworkRef {
  readonly namespace: string;
  readonly name: string;
}

export interface Attachment extends NetworkRef {
  readonly interface?: string;
}

/** Tenants write the annotation, and each attachment costs a lookup and may appear in messages. */
const MAX_CHARACTERS = 64 * 1024;
export const MAX_ATTACHMENTS = 128;
const MAX_NAME_CHARACTERS = 253;
const MAX_NAMESPACE_CHARACTERS = 63;
/** Linux's IFNAMSIZ without the terminating NUL. */
const MAX_INTERFACE_CHARACTERS = 15;
const SHORT_NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const WHAT = `annotation ${NETWORKS_ANNOTATION}`;

/** Six, eight or twenty bytes, as in Go's net.ParseMAC: multus refuses the annotation if one is invalid. */
const MAC =
  /^(?:[\da-f]{2}([:-])[\da-f]{2}(?:\1[\da-f]{2}){4}(?:(?:\1[\da-f]{2}){2}|(?:\1[\da-f]{2}){14})?|[\da-f]{4}(?:\.[\da-f]{4}){2}(?:\.[\da-f]{4}|(?:\.[\da-f]{4}){7})?)$/i;
/** An empty address counts as absent. */
const address = z.string().refine((text) => text === '' || MAC.test(text), 'it is not a MAC address');

/** As in Go, null and absence are the empty text. */
const jsonForm = z.array(
  z.object({
    name: z.string().max(MAX_NAME_CHARACTERS),
    namespace: z.string().max(MAX_NAMESPACE_CHARACTERS).nullish(),
    interface: z.string().nullish(),
    mac: address.nullish(),
    'infiniband-guid': address.nullish(),
  }),
);

const parseItems = goJsonParser(Object.keys(jsonForm.element.shape));

/**
 * `net1,other/net2@eth5`, or a JSON list: as in multus, text that contains any of `[ { "` is JSON. An item without a
 * name is kept: multus looks it up and fails. @param namespace for items without one @throws ParseError naming the item
 * Source: Network Plumbing Working Group, Multi-Network De-facto Standard 1.3; multus-cni, pkg/k8sclient.
 */
export function parseAttachments(text: string, namespace: string): readonly Attachment[] {
  const refusal = (why: string, cause?: unknown) => new ParseError(WHAT, text, why, { cause });
  if (text.length > MAX_CHARACTERS) throw refusal(`it has more than ${MAX_CHARACTERS} characters`);
  if (text.trim() === '') return [];
  const items = /[[{"]/.test(text) ? parseJson(text, refusal) : text.split(',', MAX_ATTACHMENTS + 1);
  if (items.length > MAX_ATTACHMENTS) throw refusal(`it has more than ${MAX_ATTACHMENTS} items`);
  return items.map((item) => {
    const { interface: name, ...parsed } = typeof item === 'string' ? parseItem(item, refusal) : item;
    if (name && name.length > MAX_INTERFACE_CHARACTERS)
      throw refusal(`interface name ${quote(name)} is longer than ${MAX_INTERFACE_CHARACTERS} characters`);
    const ref = { namespace: parsed.namespace || namespace, name: parsed.name };
    return name ? { ...ref, interface: name } : ref;
  });
}

export function refText(ref: NetworkRef): string {
  return `${ref.namespace}/${ref.name}`;
}

/** The form of KubeVirt's multus networkName. */
export function parseRef(text: string, namespace: string): NetworkRef {
  const slash = text.indexOf('/');
  return slash < 0 ? { namespace, name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}

type Refusal = (why: string, cause?: unknown) => ParseError;
type Item = z.infer<typeof jsonForm>[number];

function parseJson(text: string, refusal: Refusal): readonly Item[] {
  let data: unknown;
  try {
    data = parseItems(text);
  } catch (cause) {
    throw refusal('it looks like JSON and is not; expected a list of objects, or name,namespace/name@interface', cause);
  }
  // Before they are checked one by one.
  if (Array.isArray(data) && data.length > MAX_ATTACHMENTS) return data as Item[];
  const { data: items, error } = jsonForm.safeParse(data);
  if (items !== undefined) return items;
  const issue = error.issues[0];
  throw refusal(`${issue?.path.join('.') || 'it'}: ${issueText(issue?.message ?? 'unexpected content')}`);
}

function parseItem(item: string, refusal: Refusal): Item {
  const trimmed = item.trim();
  const [path = '', interfaceName, ...extra] = trimmed.split('@');
  if (extra.length > 0) throw refusal(`${quote(trimmed)} has more than one @`);
  const parts = path.split('/');
  if (parts.length > 2) throw refusal(`${quote(trimmed)} has more than one /`);
  const [name = '', namespace] = parts.reverse();
  for (const part of [name, namespace, interfaceName]) {
    const rule = 'must be lower-case letters, digits and inner hyphens (other names need the JSON form)';
    if (part && !SHORT_NAME.test(part)) throw refusal(`${quote(part)} ${rule}`);
  }
  return { name, namespace, interface: interfaceName };
}
