// A file of its own, so that it is loaded only for -o yaml; import('yaml') itself has no named exports once it is bundled.
export { stringify } from 'yaml';
