/** Gives the text of the component, or fails with it. */
export default ({ config }) => {
  if (config.text.startsWith('broken')) throw new Error(config.text);
  return config.text;
};
