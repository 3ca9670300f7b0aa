export default ({ config }) => config.colour;
