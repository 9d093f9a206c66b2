import { LARGEST as LARGEST_NOVA } from '../../cli/import/config-files.ts';
import { LONGEST_MASK, parseMask, summaryOf } from '../../model/cpu-mask/mask.ts';
import { CpuSet, LONGEST_LIST } from '../../model/cpu-set.ts';
import { parseAffinities } from '../../model/networks/affinity.ts';
import { parseAttachments } from '../../model/networks/attachments.ts';
import { EMPTY_CONTEXT } from '../../model/networks/context.ts';
import { classifyNad } from '../../model/networks/nad.ts';
import { readNovaConf } from '../../model/nova-conf/nova-conf.ts';
import { parseOsloConfig } from '../../model/nova-conf/oslo-config.ts';
import { parsePreferences } from '../../model/placement/preferences.ts';
import { parseQuantity } from '../../model/quantity.ts';
import { filled, type Input, type Parser, PER_COMMAND, PER_OBJECT, textInput } from './measure.ts';

/** Characters of all annotations of an object; the API server's limit. */
export const ANNOTATIONS = 256 * 1024;

const list = textInput((text) => CpuSet.parse(text));
const cpuList: Parser = {
  name: 'cpu-list',
  typical: list('0-3,8-11,64-67,72-75'),
  worst: {
    'one wide range': () => list('0-65535'),
    'a few wide ranges': () => list(filled(LONGEST_LIST, '0-65535', { joint: ',', most: 64 })),
    'more ranges, one of the highest id': () =>
      list(filled(LONGEST_LIST, '0', { joint: ',', most: 64, tail: ',65535' })),
    'overlapping ranges': () => list(filled(LONGEST_LIST, (i) => `${i % 9}-65535`, { joint: ',' })),
    'single CPUs': () => list(filled(LONGEST_LIST, (i) => `${(i * 2) % 65_536}`, { joint: ',' })),
    digits: () => list(filled(LONGEST_LIST, '0')),
  },
  // Seven bytes can name 65,536 CPUs, which need 8 KiB of memory.
  perByte: 30,
  milliseconds: PER_OBJECT,
};

const mask = textInput((text) => summaryOf(parseMask(text)));
const cpuMask: Parser = {
  name: 'cpu-mask',
  typical: mask('0-3:4-7:8-11:12-15'),
  worst: {
    // As many as the limit on a mask's memory allows.
    'wide entries': () => mask(filled(LONGEST_MASK, (i) => `${i}-65535`, { joint: ':', most: 16 })),
    'high CPUs': () => mask(filled(LONGEST_MASK, (i) => `${65_535 - i}`, { joint: ':', most: 16 })),
    'short entries': () => mask(filled(LONGEST_MASK, (i) => `${i}`, { joint: ':', most: 1024 })),
    'entries of many ranges': () =>
      mask(
        filled(LONGEST_MASK, (i) => `${filled(999, '0', { joint: ',', most: 64 })},${65_535 - i}`, {
          joint: ':',
          most: 16,
        }),
      ),
    'one long entry': () => mask(filled(LONGEST_MASK, (i) => `${i * 2}`, { joint: ',' })),
  },
  // The same as for lists.
  perByte: 30,
  milliseconds: PER_OBJECT,
};

const maskRequest = textInput(parseAffinities);
const AFFINITY = 16 * 1024;
const affinity: Parser = {
  name: 'numa-affinity',
  typical: maskRequest('{"dpdk-east":"required","mgmt":"none"}'),
  worst: {
    'many names': () =>
      maskRequest(filled(AFFINITY, (i) => `"${i}":"none"`, { head: '{', joint: ',', tail: '}', most: 256 })),
    'long names': () =>
      maskRequest(
        filled(AFFINITY, (i) => `"${'a'.repeat(40)}${i}":"none"`, { head: '{', joint: ',', tail: '}', most: 256 }),
      ),
    'one name many times': () => maskRequest(filled(AFFINITY, '"":"none"', { head: '{', joint: ',', tail: '}' })),
    escapes: () => maskRequest(filled(AFFINITY, '\\u0061', { head: '{"', tail: '":"none"}' })),
    blanks: () => maskRequest(filled(AFFINITY, ' ', { head: '{', tail: '}' })),
  },
  milliseconds: PER_OBJECT,
};

const NETWORKS = 64 * 1024;
/** The parser remembers its last result: a namespace that changes with each call makes it parse each time. */
let namespace = 'home';
const attached = textInput((text) => {
  namespace = namespace === 'home' ? 'away' : 'home';
  return parseAttachments(text, namespace);
});
const networks: Parser = {
  name: 'networks',
  typical: attached('east,other/west@eth5'),
  worst: {
    'many items': () => attached(filled(NETWORKS, 'a', { joint: ',', most: 128 })),
    'long items': () => attached(filled(NETWORKS, `${'a'.repeat(500)}`, { joint: ',', most: 128 })),
    hyphens: () => attached(filled(NETWORKS, '-', { head: 'a', tail: 'a' })),
    'JSON items': () => attached(filled(NETWORKS, '{"name":"a"}', { head: '[', joint: ',', tail: ']', most: 128 })),
    'JSON of other fields': () =>
      attached(filled(NETWORKS, (i) => `"${i}":[]`, { head: '[{"name":"a",', joint: ',', tail: '}]' })),
    blanks: () => attached(filled(NETWORKS, ' ')),
  },
  milliseconds: PER_OBJECT,
};

const CONFIG = 256 * 1024;
const definition = textInput((config) => {
  const found = classifyNad({ metadata: { name: 'n', namespace: 'ns' }, spec: { config } }, EMPTY_CONTEXT);
  return !(found.kind === 'none' && found.warning === 'invalid-json');
});
/** The largest number of plugins that are parsed. */
const plugins = (plugin: string) =>
  definition(filled(CONFIG, plugin, { head: '{"plugins":[', joint: ',', tail: ']}', most: 64 }));
const nad: Parser = {
  name: 'nad',
  typical: definition(
    '{"cniVersion":"0.4.0","name":"east","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"ns/east"}',
  ),
  worst: {
    'empty plugins': () => plugins('{}'),
    'plugins of wrong fields': () =>
      plugins('{"type":1,"name":1,"topology":1,"bridge":1,"master":1,"role":1,"uplink":1}'),
    'plugins of one wrong field': () => plugins('{"type":1}'),
    'wrapping plugins': () => plugins('{"type":"sbr","delegate":{"type":1}}'),
    'other fields': () => definition(filled(CONFIG, (i) => `"${i}":{}`, { head: '{', joint: ',', tail: '}' })),
    nesting: () => definition(`{"a":${'['.repeat(CONFIG / 2 - 5)}${']'.repeat(CONFIG / 2 - 5)}}`),
  },
  // A plugin costs a check of each of its fields, which have two bytes here; 64 plugins are parsed.
  perByte: 100,
  milliseconds: PER_OBJECT,
};

const placed = textInput(parsePreferences);
const preferred = (resource: string, most?: number) =>
  placed(
    filled(ANNOTATIONS, resource, {
      head: '{"preferred":[',
      joint: ',',
      tail: ']}',
      ...(most !== undefined && { most }),
    }),
  );
const placement: Parser = {
  name: 'placement',
  typical: placed('{"preferred":["physnet.plumbline.dev/east"],"spansCells":true}'),
  worst: {
    'many resources': () => preferred('"a"', 64),
    'too many resources': () => preferred('""'),
    'resources of another kind': () => preferred('0'),
    'other fields': () => placed(filled(ANNOTATIONS, (i) => `"${i}":[]`, { head: '{', joint: ',', tail: '}' })),
    nesting: () => placed('['.repeat(ANNOTATIONS)),
  },
  milliseconds: PER_OBJECT,
};

/** More texts than the parser remembers: each call parses one that it has forgotten. */
const DIFFERENT = 4096;
const amount = (textOf: (four: string) => string): Input => {
  const texts = Array.from({ length: DIFFERENT }, (_, i) => textOf(String(1000 + i)));
  let turn = 0;
  return { bytes: texts[0]!.length, parse: () => parseQuantity(texts[turn++ % DIFFERENT]!) };
};
const quantity: Parser = {
  name: 'quantity',
  typical: amount((four) => `${four}Mi`),
  worst: {
    digits: () => amount((four) => filled(64, '9', { head: four })),
    'digits of the largest suffix': () => amount((four) => filled(64, '9', { head: four, tail: 'Ei' })),
    'a negative exponent': () => amount((four) => filled(64, '9', { head: four, tail: 'e-999' })),
    'a short negative exponent': () => amount((four) => `${four}e-999`),
    'a fraction': () => amount((four) => filled(64, '9', { head: `.${four}` })),
  },
  milliseconds: PER_OBJECT,
};

const settings = textInput((text) => readNovaConf(parseOsloConfig([{ name: 'nova.conf', text }])));
const novaConf: Parser = {
  name: 'nova-conf',
  typical: settings(
    '[neutron]\nphysnets = east, west\n[neutron_physnet_east]\nnuma_nodes = 0\n[neutron_physnet_west]\nnuma_nodes = 1\n[compute]\ncpu_dedicated_set = 2-15,^8\n',
  ),
  worst: {
    options: () => settings(filled(LARGEST_NOVA, (i) => `o${i}=1\n`, { head: '[a]\n' })),
    sections: () => settings(filled(LARGEST_NOVA, (i) => `[${i}]\n`)),
    physnets: () => settings(filled(LARGEST_NOVA, (i) => `p${i}`, { head: '[neutron]\nphysnets=', joint: ',' })),
    'continued lines': () => settings(filled(LARGEST_NOVA, ' ,1\n', { head: '[neutron_tunnel]\nnuma_nodes=\n' })),
    'empty lines': () => settings(filled(LARGEST_NOVA, '\n')),
    CPUs: () =>
      settings(filled(LONGEST_LIST, (i) => `${i % 9}-65535`, { head: '[compute]\ncpu_dedicated_set=', joint: ',' })),
    commas: () => settings(filled(LARGEST_NOVA, ',', { head: '[neutron]\nphysnets=' })),
  },
  milliseconds: PER_COMMAND,
};

export const TEXTS: readonly Parser[] = [cpuList, cpuMask, affinity, networks, nad, placement, quantity, novaConf];
